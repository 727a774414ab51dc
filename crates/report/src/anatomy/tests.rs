use iotomy_record::arbitrary;
use proptest::prelude::*;

use super::*;
use crate::looks;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_record_renders(record in arbitrary::anatomy(), unicode: bool, width in 20usize..120) {
        looks::keeps_to(width, unicode, |style| anatomy(&record, style));
        looks::is_only_coloured(|style| anatomy(&record, style));
        let _ = (folded(&record), flame(&record), difference(&record, &record));
    }
}
