//! What holds for a statistic in every row: how rows are put together, its unit, its column.

/// What holds for a statistic in every row.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// How rows are put together.
    pub joins: Joins,
    /// What it is counted in.
    pub unit: Unit,
    /// The column that shows it, where one does.
    pub column: Option<Column>,
    /// Whether it is a measure of comparisons: a sum that has a column is.
    pub compared: bool,
    /// The name of its mean, where comparisons have that instead of the sum.
    pub mean: Option<&'static str>,
}

/// How two rows make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// By addition. An interval has what came in it.
    Sum,
    /// By addition. An interval has what there is at its end.
    Gauge,
    /// The larger one stays. What an interval has, its table decides.
    Most,
    /// The smaller one stays, but for 0: that is not known. What an interval has, its table decides.
    Least,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Events.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds; tables show milliseconds.
    Time,
}

/// A column of tables.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its head.
    pub head: &'static str,
    /// What stands under the head, where that is not the unit.
    pub under: Option<&'static str>,
    /// The key that sorts by it.
    pub key: &'static str,
    /// Of two columns in a narrow table, the one of less worth disappears first. One of no worth is only in pages.
    pub worth: u8,
    /// Whether 0 is left blank.
    pub blank: bool,
    /// The worth and the width of its rate in the live view, or of the number of the moment, if it has it.
    pub live: Option<(u8, usize)>,
    /// The same of the sum since the beginning.
    pub in_all: Option<(u8, usize)>,
}

/// The shape of a sum; of a distribution, too.
pub const fn sum(unit: Unit) -> Shape {
    Shape { joins: Joins::Sum, unit, column: None, compared: false, mean: None }
}

/// The shape of a number of the moment.
pub const fn gauge(unit: Unit) -> Shape {
    Shape { joins: Joins::Gauge, unit, column: None, compared: false, mean: None }
}

/// The shape of a maximum.
pub const fn most(unit: Unit) -> Shape {
    Shape { joins: Joins::Most, unit, column: None, compared: false, mean: None }
}

/// The shape of a minimum, which is 0 where it is not known.
pub const fn least(unit: Unit) -> Shape {
    Shape { joins: Joins::Least, unit, column: None, compared: false, mean: None }
}

impl Shape {
    /// Shown in a column of this head and worth.
    pub const fn column(self, head: &'static str, worth: u8) -> Self {
        let (key, under, blank) = (head, None, false);
        let column = Column { head, under, key, worth, blank, live: None, in_all: None };
        Self { column: Some(column), compared: matches!(self.joins, Joins::Sum), ..self }
    }

    /// A measure of comparisons without a column.
    pub const fn compared(self) -> Self {
        Self { compared: true, ..self }
    }

    /// Compared, instead of as a sum, as the mean of the events that the row counts: a longer run has more of them.
    pub const fn mean(self, name: &'static str) -> Self {
        Self { compared: false, mean: Some(name), ..self }
    }

    /// With this under the head.
    pub const fn under(mut self, under: &'static str) -> Self {
        if let Some(column) = &mut self.column {
            column.under = Some(under);
        }
        self
    }

    /// Sorted by with this key, where that is not the head.
    pub const fn key(mut self, key: &'static str) -> Self {
        if let Some(column) = &mut self.column {
            column.key = key;
        }
        self
    }

    /// In the live view, too: its worth and width there.
    pub const fn live(mut self, worth: u8, width: usize) -> Self {
        if let Some(column) = &mut self.column {
            column.live = Some((worth, width));
        }
        self
    }

    /// There with its sum since the beginning, too.
    pub const fn in_all(mut self, worth: u8, width: usize) -> Self {
        if let Some(column) = &mut self.column {
            column.in_all = Some((worth, width));
        }
        self
    }

    /// Where it is 0, its column is blank.
    pub const fn blank(mut self) -> Self {
        if let Some(column) = &mut self.column {
            column.blank = true;
        }
        self
    }
}
