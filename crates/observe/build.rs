//! Compiles the kernel side of the `bpf` observer.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

/// Each is loaded by what needs it, and by nothing else.
const OBJECTS: [&str; 2] = ["trace", "block"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    for object in OBJECTS {
        let source = format!("src/bpf/{object}.bpf.c");
        let built = SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{object}.bpf.o")))
            .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-Isrc/bpf"])
            .build();
        if let Err(error) = built {
            panic!(
                "cannot compile {source}: {error:#}; install clang and libelf-dev, or run `make setup`"
            );
        }
    }
    println!("cargo:rerun-if-changed=src/bpf");
}
