//! Compiles the BPF programs that observers are compared with.

use std::env;
use std::path::PathBuf;

use libbpf_cargo::SkeletonBuilder;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    for name in ["empty", "clock", "empty_rings", "clock_rings", "sample", "steal"] {
        let source = format!("src/bpf/{name}.bpf.c");
        let built = SkeletonBuilder::new()
            .source(&source)
            .obj(out.join(format!("{name}.bpf.o")))
            .clang_args(["-mcpu=v3", "-Wall", "-Werror"])
            .build();
        if let Err(error) = built {
            panic!(
                "cannot compile {source}: {error:#}; install clang and libelf-dev, or run `make setup`"
            );
        }
    }
    println!("cargo:rerun-if-changed=src/bpf");
}
