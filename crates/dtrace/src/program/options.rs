//! A program's options, by `#pragma D option` or the command line.

use super::tree::OptionSetting;
use crate::error::Problem;
use crate::names::nearest;

/// What a program is run with. Sizes are bytes, and times nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Only what the program prints.
    pub quiet: bool,
    /// What changes the machine is allowed, such as `system()`.
    pub destructive: bool,
    /// Indent entries and returns of functions.
    pub flowindent: bool,
    /// The bound of a string, its end included.
    pub strsize: u32,
    /// The buffer of records.
    pub bufsize: u64,
    /// The memory of aggregations.
    pub aggsize: u64,
    /// The memory of associative arrays and thread-local variables.
    pub dynvarsize: u64,
    /// Frames of `stack()`.
    pub stackframes: u16,
    /// Frames of `ustack()`.
    pub ustackframes: u16,
    /// Blanks before a frame.
    pub stackindent: u16,
    /// Sort aggregations by key, not by value.
    pub aggsortkey: bool,
    /// Sort aggregations from the largest on.
    pub aggsortrev: bool,
    /// Which of several aggregations sorts.
    pub aggsortpos: u16,
    /// Which key sorts first.
    pub aggsortkeypos: u16,
    /// How often buffers are read.
    pub switchrate: u64,
    /// How often aggregations are read.
    pub aggrate: u64,
    /// How often freed variables are taken back.
    pub cleanrate: u64,
    /// Probes that no clause finds are no error.
    pub zdefs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            quiet: false,
            destructive: false,
            flowindent: false,
            strsize: 256,
            bufsize: 4 << 20,
            aggsize: 4 << 20,
            dynvarsize: 1 << 20,
            stackframes: 20,
            ustackframes: 20,
            stackindent: 14,
            aggsortkey: false,
            aggsortrev: false,
            aggsortpos: 0,
            aggsortkeypos: 0,
            switchrate: 1_000_000_000,
            aggrate: 1_000_000_000,
            cleanrate: 9_900_990,
            zdefs: false,
        }
    }
}

/// The options that are not there, and why.
const MISSING: [(&str, &str); 13] = [
    ("nspec", "speculation is not supported; keep what you need in self-> variables"),
    ("specsize", "speculation is not supported; keep what you need in self-> variables"),
    ("specbufsize", "speculation is not supported; keep what you need in self-> variables"),
    ("grabanon", "there is no tracing at boot"),
    ("aggzoom", "pictures are drawn by their total"),
    ("agghist", "pictures are those of quantize()"),
    ("aggpack", "pictures are those of quantize()"),
    ("encoding", "pictures are drawn in ASCII"),
    ("jstackframes", "jstack() is not supported; take ustack()"),
    ("jstackstrsize", "jstack() is not supported; take ustack()"),
    ("rawbytes", "strings are printed as text"),
    ("cpu", "all CPUs are traced"),
    ("bufpolicy", "buffers are read while they are filled"),
];

impl Options {
    /// The names that may be set.
    pub const NAMES: [&str; 20] = [
        "quiet",
        "destructive",
        "flowindent",
        "strsize",
        "bufsize",
        "aggsize",
        "dynvarsize",
        "stackframes",
        "ustackframes",
        "stackindent",
        "aggsortkey",
        "aggsortrev",
        "aggsortpos",
        "aggsortkeypos",
        "switchrate",
        "aggrate",
        "cleanrate",
        "zdefs",
        "defaultargs",
        "statusrate",
    ];

    /// Whether the value of an option that is on or off is on.
    pub fn is_on(value: Option<&str>) -> bool {
        switched("", value) == Ok(true)
    }

    pub(crate) fn set(&mut self, setting: &OptionSetting) -> Result<(), Problem> {
        let result = self.set_by_name(&setting.name, setting.value.as_deref());
        result.map_err(|(message, advice)| Problem::new(setting.span.clone(), message, advice))
    }

    /// Sets one by its name; the error is what is wrong, and advice.
    ///
    /// # Errors
    /// There is no such option, or the value is not one of its values.
    pub fn set_by_name(&mut self, name: &str, value: Option<&str>) -> Result<(), (String, String)> {
        if let Some((_, why)) = MISSING.iter().find(|(missing, _)| *missing == name) {
            return Err((format!("the option `{name}` is not supported"), (*why).to_owned()));
        }
        let size = || sized(name, value);
        let small = |most: u64| match sized(name, value)? {
            number if number <= most => Ok(number as u16),
            _ => Err((format!("`{name}` is too large"), format!("the largest is {most}"))),
        };
        let flag = || switched(name, value);
        match name {
            "quiet" => self.quiet = flag()?,
            "destructive" => self.destructive = flag()?,
            "flowindent" => self.flowindent = flag()?,
            "aggsortkey" => self.aggsortkey = flag()?,
            "aggsortrev" => self.aggsortrev = flag()?,
            "zdefs" => self.zdefs = flag()?,
            "defaultargs" => _ = flag()?,
            "strsize" => match size()? {
                length @ 2..=1024 => self.strsize = length as u32,
                _ => return Err(out_of_range(name, "2 to 1024 bytes")),
            },
            "bufsize" => match size()? {
                bytes @ LEAST_BUFFER..=MOST_BUFFER => self.bufsize = bytes,
                _ => return Err(out_of_range(name, "4k to 1g")),
            },
            "aggsize" => match size()? {
                0 => return Err(out_of_range(name, "1 byte or more")),
                bytes => self.aggsize = bytes,
            },
            "dynvarsize" => match size()? {
                0 => return Err(out_of_range(name, "1 byte or more")),
                bytes => self.dynvarsize = bytes,
            },
            "stackframes" => self.stackframes = small(127)?,
            "ustackframes" => self.ustackframes = small(127)?,
            "stackindent" => self.stackindent = small(127)?,
            "aggsortpos" => self.aggsortpos = small(1000)?,
            "aggsortkeypos" => self.aggsortkeypos = small(1000)?,
            "switchrate" => self.switchrate = rate(name, value)?,
            "aggrate" => self.aggrate = rate(name, value)?,
            "cleanrate" => self.cleanrate = rate(name, value)?,
            "statusrate" => _ = rate(name, value)?,
            _ => {
                let advice = match nearest(name, Self::NAMES.into_iter()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the options are {}", Self::NAMES.join(", ")),
                };
                let shown: String = name.chars().take(40).collect();
                return Err((format!("unknown option `{shown}`"), advice));
            }
        }
        Ok(())
    }
}

type Refusal = (String, String);

/// The kernel's buffers are whole pages.
const LEAST_BUFFER: u64 = 4 << 10;
const MOST_BUFFER: u64 = 1 << 30;

fn out_of_range(name: &str, range: &str) -> Refusal {
    (format!("`{name}` is out of range"), range.to_owned())
}

fn switched(name: &str, value: Option<&str>) -> Result<bool, Refusal> {
    match value {
        None | Some("1" | "yes" | "true" | "on" | "enabled" | "set") => Ok(true),
        Some("0" | "no" | "false" | "off" | "disabled" | "unset") => Ok(false),
        Some(_) => Err((format!("`{name}` is on or off"), format!("write {name} alone"))),
    }
}

/// A number with k, m, g or t behind it.
fn sized(name: &str, value: Option<&str>) -> Result<u64, Refusal> {
    let refused = || (format!("`{name}` needs a number"), format!("as in {name}=64k"));
    let value = value.ok_or_else(refused)?;
    let digits = value.find(|one: char| !one.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..digits].parse().map_err(|_| refused())?;
    let power = match value[digits..].to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return Err(refused()),
    };
    number.checked_mul(1 << (10 * power)).ok_or_else(refused)
}

/// The nanoseconds between two times of something that is done at a rate.
fn rate(name: &str, value: Option<&str>) -> Result<u64, Refusal> {
    let refused = || (format!("`{name}` needs a rate"), format!("as in {name}=10hz or {name}=1s"));
    let value = value.ok_or_else(refused)?;
    let digits = value.find(|one: char| !one.is_ascii_digit()).unwrap_or(value.len());
    let number: u64 = value[..digits].parse().map_err(|_| refused())?;
    if number == 0 {
        return Err(refused());
    }
    let unit = match value[digits..].to_ascii_lowercase().as_str() {
        "" | "hz" => return Ok(1_000_000_000 / number),
        "ns" | "nsec" => 1,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" | "hour" => 3_600_000_000_000,
        "d" | "day" => 86_400_000_000_000,
        _ => return Err(refused()),
    };
    number.checked_mul(unit).ok_or_else(refused)
}
