//! The report of a record as text.

use iotomy_record::Trace;
use iotomy_report::Style;

/// The report, or its brief form.
pub(super) fn report_text(record: &Trace, is_brief: bool, style: &Style) -> String {
    match is_brief {
        true => iotomy_report::trace_brief(record, style),
        false => iotomy_report::trace(record, style),
    }
}
