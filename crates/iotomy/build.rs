//! How the command is linked, so that it starts fast; see "The start of the command" in ARCHITECTURE.md.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // `make build` links with it.
    println!("cargo:rerun-if-changed=start.ld");
    // Loaded at its own addresses: no pointer of its tables has to be corrected, and no page of them
    // copied for that. Stack and heap keep addresses of chance.
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // The unwinder of the compiler from its archive; as a library it takes longer to load than the C
    // library does.
    println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
}
