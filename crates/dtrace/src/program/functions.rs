//! The functions that have a value, with the types of their arguments.

use crate::types::{Integer, Target, Type};

/// A function that an expression may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `alloca(size)`: a place of so many bytes.
    Alloca,
    /// `basename(path)`
    Basename,
    /// `cleanpath(path)`
    Cleanpath,
    /// `copyin(address, size)`: the process's memory, copied to a place.
    Copyin,
    /// `copyinstr(address[, size])`
    Copyinstr,
    /// `copyinto(address, size, place)`
    Copyinto,
    /// `dirname(path)`
    Dirname,
    /// `htons(number)`
    Htons,
    /// `htonl(number)`
    Htonl,
    /// `htonll(number)`
    Htonll,
    /// `index(text, part[, from])`
    Index,
    /// `inet_ntoa(address)`
    InetNtoa,
    /// `lltostr(number[, base])`
    Lltostr,
    /// `ntohs(number)`
    Ntohs,
    /// `ntohl(number)`
    Ntohl,
    /// `ntohll(number)`
    Ntohll,
    /// `progenyof(process)`
    Progenyof,
    /// `rand()`
    Rand,
    /// `rindex(text, part[, from])`
    Rindex,
    /// `strchr(text, byte)`
    Strchr,
    /// `strrchr(text, byte)`
    Strrchr,
    /// `strstr(text, part)`
    Strstr,
    /// `strtok(text, separators)`
    Strtok,
    /// `strtoll(text[, base])`
    Strtoll,
    /// `strjoin(first, second)`
    Strjoin,
    /// `strlen(text)`
    Strlen,
    /// `substr(text, from[, length])`
    Substr,
    /// `tolower(text)`
    Tolower,
    /// `toupper(text)`
    Toupper,
}

/// What an argument has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parameter {
    Integer,
    String,
}

/// A function's name, the arguments it needs and may have, and its value.
pub(crate) struct Signature {
    pub(crate) name: &'static str,
    pub(crate) function: Function,
    pub(crate) needs: &'static [Parameter],
    pub(crate) may_have: &'static [Parameter],
    pub(crate) of: Type,
}

impl Signature {
    /// As a text, such as `index(string, string[, integer])`.
    pub(crate) fn shown(&self) -> String {
        let name = |parameter: &Parameter| match parameter {
            Parameter::Integer => "integer",
            Parameter::String => "string",
        };
        let needs: Vec<&str> = self.needs.iter().map(name).collect();
        let more: String = self.may_have.iter().map(|one| format!("[, {}]", name(one))).collect();
        format!("{}({}{more})", self.name, needs.join(", "))
    }
}

const I: Parameter = Parameter::Integer;
const S: Parameter = Parameter::String;
const INT: Type = Type::INT;
const I64: Type = Type::Integer(Integer::I64);
const STRING: Type = Type::String;
const PLACE: Type = Type::Pointer(Target::Void, 1);
const U16: Type = Type::Integer(Integer { bytes: 2, signed: false });
const U32: Type = Type::Integer(Integer::UINT);
const U64: Type = Type::Integer(Integer::U64);

const fn signature(
    name: &'static str,
    function: Function,
    needs: &'static [Parameter],
    may_have: &'static [Parameter],
    of: Type,
) -> Signature {
    Signature { name, function, needs, may_have, of }
}

pub(crate) const FUNCTIONS: [Signature; 29] = [
    signature("alloca", Function::Alloca, &[I], &[], PLACE),
    signature("basename", Function::Basename, &[S], &[], STRING),
    signature("cleanpath", Function::Cleanpath, &[S], &[], STRING),
    signature("copyin", Function::Copyin, &[I, I], &[], PLACE),
    signature("copyinstr", Function::Copyinstr, &[I], &[I], STRING),
    signature("copyinto", Function::Copyinto, &[I, I, I], &[], Type::Void),
    signature("dirname", Function::Dirname, &[S], &[], STRING),
    signature("htons", Function::Htons, &[I], &[], U16),
    signature("htonl", Function::Htonl, &[I], &[], U32),
    signature("htonll", Function::Htonll, &[I], &[], U64),
    signature("index", Function::Index, &[S, S], &[I], INT),
    signature("inet_ntoa", Function::InetNtoa, &[I], &[], STRING),
    signature("lltostr", Function::Lltostr, &[I], &[I], STRING),
    signature("ntohs", Function::Ntohs, &[I], &[], U16),
    signature("ntohl", Function::Ntohl, &[I], &[], U32),
    signature("ntohll", Function::Ntohll, &[I], &[], U64),
    signature("progenyof", Function::Progenyof, &[I], &[], INT),
    signature("rand", Function::Rand, &[], &[], INT),
    signature("rindex", Function::Rindex, &[S, S], &[I], INT),
    signature("strchr", Function::Strchr, &[S, I], &[], STRING),
    signature("strrchr", Function::Strrchr, &[S, I], &[], STRING),
    signature("strstr", Function::Strstr, &[S, S], &[], STRING),
    signature("strtok", Function::Strtok, &[S, S], &[], STRING),
    signature("strtoll", Function::Strtoll, &[S], &[I], I64),
    signature("strjoin", Function::Strjoin, &[S, S], &[], STRING),
    signature("strlen", Function::Strlen, &[S], &[], U64),
    signature("substr", Function::Substr, &[S, I], &[I], STRING),
    signature("tolower", Function::Tolower, &[S], &[], STRING),
    signature("toupper", Function::Toupper, &[S], &[], STRING),
];

/// Functions and actions of DTrace that are not here, and what there is instead.
pub(crate) const MISSING: [(&str, &str); 38] = [
    ("speculate", "speculation is not supported; keep what you need in self-> variables"),
    ("speculation", "speculation is not supported; keep what you need in self-> variables"),
    ("commit", "speculation is not supported; keep what you need in self-> variables"),
    ("discard", "speculation is not supported; keep what you need in self-> variables"),
    ("stop", "send a signal by system()"),
    ("raise", "send a signal by system()"),
    ("copyout", "the memory of processes is only read"),
    ("copyoutstr", "the memory of processes is only read"),
    ("breakpoint", "the kernel is not stopped"),
    ("panic", "the kernel is not stopped"),
    ("chill", "the kernel is not stopped"),
    ("jstack", "take ustack()"),
    ("freopen", "redirect the command's output"),
    ("ftruncate", "redirect the command's output"),
    ("print", "take printf() or trace()"),
    ("pcap", "packets are not traced"),
    ("ddi_pathname", "take args[1]->dev_statname"),
    ("getmajor", "take args[1]->dev_major"),
    ("getminor", "take args[1]->dev_minor"),
    ("msgdsize", "the kernel's structures are not known"),
    ("msgsize", "the kernel's structures are not known"),
    ("mutex_owned", "locks of the kernel are not known"),
    ("mutex_owner", "locks of the kernel are not known"),
    ("mutex_type_adaptive", "locks of the kernel are not known"),
    ("mutex_type_spin", "locks of the kernel are not known"),
    ("rw_read_held", "locks of the kernel are not known"),
    ("rw_write_held", "locks of the kernel are not known"),
    ("rw_iswriter", "locks of the kernel are not known"),
    ("getf", "take fds[]"),
    ("json", "take strstr() and substr()"),
    ("inet_ntop", "take inet_ntoa()"),
    ("inet_ntoa6", "take inet_ntoa()"),
    ("toint", "take strtoll()"),
    ("tostring", "take lltostr()"),
    ("vtophys", "the kernel's memory is not known"),
    ("offsetof", "structures are not declared here"),
    ("xlate", "take the members as they are"),
    ("nop", ""),
];
