//! Finding zeros: the parts of a buffer that hold nothing else.

/// Bytes examined together, so that the compiler uses vectors: some twenty times as fast as byte by
/// byte, and as fast as memory. A block with other bytes is recognised by its first few.
const TOGETHER: usize = 64;

/// Whether there is nothing but zeros.
fn is_zeros(bytes: &[u8]) -> bool {
    let mut pieces = bytes.chunks_exact(TOGETHER);
    pieces.by_ref().all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
        && pieces.remainder().iter().all(|byte| *byte == 0)
}

/// How many bytes from the beginning of `bytes`, which are to be at offset `at` of a file, are in
/// blocks of one kind, and whether that is zeros. A block that `bytes` has only a part of is judged
/// by that part. There is at least one byte.
pub(super) fn run_of(bytes: &[u8], at: u64, block: usize) -> (usize, bool) {
    let into = usize::try_from(at % block as u64).expect("less than a block");
    let mut until = bytes.len().min(block - into);
    let zeros = is_zeros(&bytes[..until]);
    while until < bytes.len() {
        let next = bytes.len().min(until + block);
        if is_zeros(&bytes[until..next]) != zeros {
            break;
        }
        until = next;
    }
    (until, zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_byte_anywhere_makes_a_block_no_zeros() {
        for length in [1, 63, 64, 65, 127, 512, 4096, 4097] {
            let mut block = vec![0; length];
            assert!(is_zeros(&block), "{length}");
            for at in 0..length {
                block[at] = 1;
                assert!(!is_zeros(&block), "{at} of {length}");
                block[at] = 0;
            }
        }
        assert!(is_zeros(&[]));
    }

    proptest! {
        #[test]
        fn runs_end_on_blocks_of_the_file_and_change_their_kind(
            pieces in proptest::collection::vec((any::<bool>(), 1_usize..40), 1..20),
            at in 0_u64..100,
            block in 1_usize..40,
        ) {
            let bytes: Vec<u8> =
                pieces.iter().flat_map(|&(zero, n)| vec![u8::from(!zero); n]).collect();
            let mut from = 0;
            let mut before = None;
            while from < bytes.len() {
                let place = at + from as u64;
                let (length, zeros) = run_of(&bytes[from..], place, block);
                prop_assert!(length > 0);
                prop_assert_ne!(before, Some(zeros));
                before = Some(zeros);
                let run = &bytes[from..from + length];
                if zeros {
                    prop_assert!(run.iter().all(|byte| *byte == 0));
                }
                from += length;
                prop_assert!(from == bytes.len() || (at + from as u64).is_multiple_of(block as u64));
            }
        }
    }
}
