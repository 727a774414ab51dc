//! The style of text, from the caller.

/// The style of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Whether characters outside ASCII may be used; without, names that hold some are escaped.
    pub unicode: bool,
    /// Columns a line may take; below 20 it is taken for 20.
    pub width: usize,
    /// Columns a table may take that needs more than that; nothing below `width`.
    pub table_width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, unicode: true, width: 100, table_width: 0 }
    }
}
