//! The paths that calls were given.

use serde::{Deserialize, Serialize};

use crate::statistics;

statistics! {
    /// Calls of one program image that were given the same path and had the same outcome.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    pub struct PathUse {
        /// Process id.
        pub pid: u32,
        /// Program image.
        pub exec: String,
        /// Which of the process's images of this name it is, in the order they began; 0 where there is but one.
        #[serde(default, skip_serializing_if = "crate::absent::is_alone")]
        pub image: u32,
        /// The call.
        pub syscall: String,
        /// Whether it is the second of two paths, as the new name of a file is: its calls and their time
        /// are also in the row of the first.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub second: bool,
        /// The error, as `ENOENT`; absent where the calls succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub error: Option<String>,
        /// The path, a relative one behind the directory at which it begins; absent where it could not
        /// be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub path: Option<String>,
        /// Calls that returned.
        pub calls: u64 => sum(Count).column("calls", 8),
        /// Their time from entry to return.
        pub wall_ns: u64 => sum(Time).column("time", 5),
    }
}
