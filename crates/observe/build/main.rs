//! Compiles the kernel sides: of the `bpf` observer, of what watches beside it, of the count of
//! wake-ups, and of the watch of a completion port. What the command has of each is compressed.

use std::env;
use std::fs;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;
use miniz_oxide::deflate::{CompressionLevel, compress_to_vec};

#[path = "../src/bpf/btf.rs"]
#[allow(dead_code, reason = "the loader needs more of it")]
mod btf;
mod reduced;

use self::reduced::Reduced;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    for name in [
        "shared",
        "trace",
        "trace_details",
        "trace_where",
        "anatomy",
        "block",
        "exchanges",
        "wakeups",
        "running",
        "d",
        "d_details",
    ] {
        let source = format!("src/bpf/{name}.bpf.c");
        let object = out.join(format!("{name}.bpf.o"));
        let built = SkeletonBuilder::new()
            .source(&source)
            .obj(&object)
            .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-Isrc/bpf"])
            .build();
        if let Err(error) = built {
            panic!(
                "cannot compile {source}: {error:#}; install clang and libelf-dev, or run `make setup`"
            );
        }
        let bytes = fs::read(&object).expect("it was just written");
        let reduced =
            Reduced::of(&bytes).unwrap_or_else(|| panic!("{name}: not as clang makes it"));
        let packed = out.join(format!("{name}.bpf.o.z"));
        let compressed = compress_to_vec(&reduced.object, CompressionLevel::BestCompression as u8);
        let (types, numbers) = (Vec::from_iter(&reduced.types), &reduced.numbers);
        let embedded = format!(
            "Embedded {{ name: {name:?}, compressed: include_bytes!({packed:?}), types: &{types:?}, \
             numbers: &{numbers:?} }}"
        );
        for (file, bytes) in
            [(packed, compressed), (out.join(format!("{name}.rs")), embedded.into_bytes())]
        {
            fs::write(&file, bytes)
                .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        }
    }
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=build");
}
