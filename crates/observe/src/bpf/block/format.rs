//! The offsets of a tracepoint's values in its record, from tracefs.

use super::events::Tracepoint;
use super::layout::RecordPlan;
use crate::tracefs::Tracefs;

/// How the running kernel has `tracepoint`; `None`: it does not, or has it otherwise.
pub(super) fn plan(tracefs: &Tracefs, tracepoint: &Tracepoint) -> Option<RecordPlan> {
    parse(&tracefs.format(tracepoint.category, tracepoint.name)?, tracepoint)
}

fn parse(text: &str, tracepoint: &Tracepoint) -> Option<RecordPlan> {
    let mut plan = RecordPlan::default();
    for (nth, name) in tracepoint.fields.iter().enumerate() {
        let bare = name.trim_end_matches('?');
        match field(text, bare) {
            Some(found) => {
                plan.offsets[nth] = found.offset;
                plan.sizes[nth] = found.size + if found.signed { 8 } else { 0 };
            }
            None if bare.len() < name.len() => {}
            None => return None,
        }
    }
    if let Some(device) = tracepoint.device {
        plan.device = field(text, device).filter(|found| found.size == 4)?.offset;
    }
    Some(plan)
}

struct Field {
    offset: u16,
    size: u8,
    signed: bool,
}

/// A line is as `field:loff_t pos; offset:24; size:8; signed:1;`, with tabs between its parts.
fn field(text: &str, name: &str) -> Option<Field> {
    text.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let declared = parts.next()?.rsplit([' ', '*']).next()?;
        if declared != name {
            return None;
        }
        let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
        let signed = parts.next()?.strip_prefix("signed:")? == "1";
        matches!(size, 1 | 2 | 4 | 8).then_some(Field { offset, size, signed })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE_BEGIN: &str = "name: ext4_da_write_begin\nID: 1363\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:loff_t pos;\toffset:24;\tsize:8;\tsigned:1;\n\
        \tfield:char name[32];\toffset:32;\tsize:32;\tsigned:0;\n\
        \tfield:unsigned int len;\toffset:64;\tsize:4;\tsigned:0;\n";

    fn tracepoint(fields: &'static [&'static str], device: Option<&'static str>) -> Tracepoint {
        Tracepoint { category: "ext4", name: "ext4_da_write_begin", fields, device }
    }

    #[test]
    fn values_are_where_the_format_says() {
        let plan = parse(WRITE_BEGIN, &tracepoint(&["pos", "len"], Some("dev"))).unwrap();
        assert_eq!(plan.offsets, [24, 64, 0, 0]);
        assert_eq!(plan.sizes, [16, 4, 0, 0]);
        assert_eq!(plan.device, 8);
    }

    #[test]
    fn a_missing_field_is_no_plan_unless_it_may_be_missing() {
        assert!(parse(WRITE_BEGIN, &tracepoint(&["pos", "flags"], None)).is_none());
        assert!(parse(WRITE_BEGIN, &tracepoint(&["pos"], Some("s_dev"))).is_none());
        let plan = parse(WRITE_BEGIN, &tracepoint(&["flags?", "len"], None)).unwrap();
        assert_eq!(plan.sizes, [0, 4, 0, 0]);
    }

    #[test]
    fn a_text_or_another_kernels_wording_is_no_value() {
        assert!(parse(WRITE_BEGIN, &tracepoint(&["name"], None)).is_none());
        assert!(parse("field:int x", &tracepoint(&["x"], None)).is_none());
    }
}
