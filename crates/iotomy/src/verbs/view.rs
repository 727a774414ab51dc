//! The view of a record: the options that `trace` and `show` share.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use iotomy_record::{Quantity, SortKey, View};

/// What of a record is shown.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ViewArgs {
    /// Sort rows by this, largest first, in the tables that have such a column
    #[arg(long, value_name = "KEY", value_parser = sort_keys())]
    sort: Option<SortKey>,

    /// Show at most N rows of a table; 0 shows all
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    /// Show power-of-two distributions of these quantities, instead of the return values of the
    /// calls that move the most bytes
    ///
    /// Of ring operations, return are the results that are numbers of bytes, and wall is the time from
    /// submission to completion.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', value_parser = quantities())]
    quantize: Vec<Quantity>,

    /// Show the most important on one screen: at most 24 lines of 80 columns; the record has everything
    #[arg(long, conflicts_with_all = ["top", "quantize"])]
    brief: bool,
}

impl ViewArgs {
    /// Whether one screen is wanted.
    pub(crate) fn is_brief(&self) -> bool {
        self.brief
    }

    /// Changes `view` where an option was given.
    pub(crate) fn apply_to(&self, view: &mut View) {
        if let Some(sort) = self.sort {
            view.sort = sort;
        }
        if self.top.is_some() {
            view.top = self.top;
        }
        if !self.quantize.is_empty() {
            view.quantize.clone_from(&self.quantize);
            view.quantize.dedup();
        }
    }
}

pub(super) fn sort_keys() -> impl TypedValueParser<Value = SortKey> {
    PossibleValuesParser::new(SortKey::all().into_iter().map(SortKey::name))
        .try_map(|name| SortKey::named(&name).ok_or("no such key"))
}

fn quantities() -> impl TypedValueParser<Value = Quantity> {
    PossibleValuesParser::new(Quantity::ALL.map(Quantity::name)).try_map(|name| {
        Quantity::ALL.into_iter().find(|quantity| quantity.name() == name).ok_or("no such quantity")
    })
}
