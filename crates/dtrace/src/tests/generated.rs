//! Texts of programs: generated ones, and those with a mistake put in.

use proptest::prelude::*;

/// Words of the language, of which texts are made.
pub(super) const WORDS: [&str; 92] = [
    "BEGIN",
    "END",
    "ERROR",
    "syscall::read:entry",
    "syscall:::return",
    "tick-1s",
    "profile-97hz",
    "io:::start",
    "{",
    "}",
    "{",
    "}",
    "/",
    "/",
    ";",
    ";",
    ";",
    ",",
    "(",
    ")",
    "(",
    ")",
    "[",
    "]",
    "@",
    "@a",
    "@b[",
    "$1",
    "$$1",
    "$target",
    "$9",
    "self->",
    "this->",
    "x",
    "y",
    "self->x",
    "this->y",
    "a[",
    "1",
    "0",
    "07",
    "0x10",
    "5ms",
    "\"a\"",
    "\"%d\\n\"",
    "\"%s %@d\"",
    "'a'",
    "\"",
    "'",
    "=",
    "+=",
    "++",
    "--",
    "->",
    ".",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    "==",
    "&&",
    "^^",
    "?",
    ":",
    "!",
    "~",
    "pid",
    "execname",
    "arg0",
    "args[0]",
    "curpsinfo",
    "fds[",
    "count()",
    "quantize(",
    "printf(",
    "printa(",
    "trace(",
    "exit(",
    "copyinstr(",
    "(int)",
    "(char *)",
    "sizeof",
    "string",
    "int",
    "inline",
    "enum",
    "#pragma D option quiet\n",
    "/*",
    "*/",
    "\n",
];

/// An expression of integers.
fn integers() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "pid",
            "arg0",
            "arg1",
            "timestamp",
            "x",
            "self->n",
            "this->c",
            "u",
            "a[1]",
            "errno",
            "$1",
            "bytes",
            "curpsinfo->pr_uid",
            "sizeof (int)",
            "strlen(execname)",
            "ENOENT",
            "self->t[2, \"k\"]",
        ])
        .prop_map(str::to_owned),
        (0i64..70).prop_map(|number| number.to_string()),
        any::<u64>().prop_map(|number| number.to_string()),
        prop::sample::select(vec!["execname", "probefunc", "\"cat\"", "s", "call"])
            .prop_map(|text| format!("({text} == \"cat\")")),
        Just("*(int *)copyin(0x1000, 4)".to_owned()),
        Just("progenyof(10)".to_owned()),
        Just("index(\"hello\", \"l\")".to_owned()),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let operators = vec![
            "*", "/", "%", "+", "-", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&", "^", "|", "&&", "^^", "||",
        ];
        prop_oneof![
            6 => (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            1 => (prop::sample::select(vec!["-", "+", "!", "~", "(char)", "(uint32_t)", "(int64_t)"]), inner.clone())
                .prop_map(|(operator, of)| format!("({operator}{of})")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            1 => (prop::sample::select(vec!["x", "self->n", "this->c", "u", "a[1]"]),
                prop::sample::select(vec!["=", "+=", "-=", "^=", "<<="]), inner)
                .prop_map(|(to, operator, of)| format!("({to} {operator} {of})")),
        ]
    })
}

fn strings() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "execname",
        "probefunc",
        "\"/usr/lib\"",
        "s",
        "copyinstr(arg0)",
        "self->name",
        "\"\"",
        "lltostr(arg1)",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (
                prop::sample::select(vec!["basename", "dirname", "cleanpath", "toupper"]),
                inner.clone()
            )
                .prop_map(|(function, of)| format!("{function}({of})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("strjoin({a}, {b})")),
            (inner.clone(), inner.clone(), integers())
                .prop_map(|(a, b, i)| format!("({i} ? {a} : {b})")),
            (inner, -9i64..9, -9i64..9).prop_map(|(of, a, b)| format!("substr({of}, {a}, {b})")),
        ]
    })
}

fn statements() -> impl Strategy<Value = String> {
    prop_oneof![
        integers().prop_map(|one| format!("trace({one})")),
        strings().prop_map(|one| format!("trace({one})")),
        (integers(), strings())
            .prop_map(|(i, s)| format!("printf(\"%d %x %-9s\\n\", {i}, {i}, {s})")),
        (strings(), integers()).prop_map(|(s, i)| format!("@n[{s}, (int){i}] = count()")),
        integers().prop_map(|i| format!("@q = quantize({i})")),
        integers().prop_map(|i| format!("@l[pid] = lquantize({i}, -10, 100, 7)")),
        integers().prop_map(|i| format!("@ll = llquantize({i}, 10, 0, 5, 20)")),
        integers().prop_map(|i| format!("@d[tid] = stddev({i})")),
        integers().prop_map(|i| format!("@v[tid] = avg({i})")),
        strings().prop_map(|s| format!("self->name = {s}")),
        strings().prop_map(|s| format!("s = {s}")),
        (integers(), integers()).prop_map(|(k, v)| format!("a[{k}] = {v}")),
        (integers(), integers()).prop_map(|(k, v)| format!("self->t[{k}, \"k\"] += {v}")),
        prop::sample::select(vec![
            "x++",
            "--self->n",
            "printa(@n)",
            "printa(\"%s %d %@d\\n\", @n)",
            "trunc(@n, 2)",
            "clear(@q)",
            "normalize(@d, x)",
            "stack()",
            "self->name = NULL",
            "@[stack(1)] = count()",
            "printa(@q)",
        ])
        .prop_map(str::to_owned),
    ]
}

/// What generated clauses name is declared before them.
const DECLARATIONS: &str = "#pragma D option dynvarsize=1k
#pragma D option aggsize=8k
#pragma D option strsize=32
int x;
uint32_t u;
string s;
int a[int64_t];
self int64_t n;
self string name;
self int t[int, string];
this char c;
BEGIN { @n[\"\", 0] = count(); @q = quantize(0); @d[tid] = stddev(0); }
";

pub(super) fn programs() -> impl Strategy<Value = String> {
    let probes = prop::sample::select(vec![
        "syscall::read:entry",
        "syscall:::return,\ntick-1s",
        "BEGIN",
        "END",
        "ERROR",
        "*",
        "syscall::[rw]*:",
    ]);
    let clause = (probes, prop::option::of(integers()), prop::collection::vec(statements(), 0..5));
    let clause = clause.prop_map(|(probes, predicate, statements)| {
        let predicate = predicate.map_or(String::new(), |one| format!("/ {one} /\n"));
        format!("{probes}\n{predicate}{{\n{}\n}}\n", statements.join(";\n"))
    });
    prop::collection::vec(clause, 1..4).prop_map(|all| format!("{DECLARATIONS}{}", all.concat()))
}

/// A text with a part taken out, doubled, or replaced by a word.
pub(super) fn mutated() -> impl Strategy<Value = String> {
    let change =
        (any::<prop::sample::Index>(), 0usize..9, prop::sample::select(WORDS.to_vec()), 0u8..4);
    (programs(), prop::collection::vec(change, 1..4)).prop_map(|(mut text, changes)| {
        for (at, length, word, kind) in changes {
            let start = at.index(text.len());
            let end = (start + length).min(text.len());
            // All of it is ASCII.
            let part = text[start..end].to_owned();
            match kind {
                0 => text.replace_range(start..end, ""),
                1 => text.insert_str(end, &part),
                2 => text.replace_range(start..end, word),
                _ => text.insert_str(start, word),
            }
        }
        text
    })
}
