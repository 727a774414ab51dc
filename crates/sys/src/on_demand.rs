//! libelf, zlib and the C library's mathematics, loaded when they are first asked for: to load them
//! takes longer than to copy a small file, and few runs need them. libbpf asks the first two, when the
//! `bpf` observer reads ELF; a machine without them has all the rest.
//!
//! The functions below have the names that are called, so it is these that are linked, and the
//! libraries are not needed to start. Each passes its arguments on to the function of the same name in
//! the library. Without the library each answers as it does for an error.
//!
//! The one invariant: a function is declared here with as many arguments as in `libelf.h`, `gelf.h`
//! or `zlib.h`, none of them a floating point number. Whole numbers and pointers then pass through in
//! registers whatever their types are. Those of `math.h` have floating point numbers alone.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// An argument or answer: a pointer, or a number in the lower part.
type Word = *mut c_void;

/// A library with its file and the package that has it (of Debian), and what came of loading it.
struct Library {
    file: &'static CStr,
    package: &'static str,
    handle: OnceLock<Result<Handle, String>>,
}

/// As dlopen(3) gives it; never closed.
struct Handle(Word);

// SAFETY: a handle is only handed to dlsym(3), which any thread may call.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

static ELF: Library = Library { file: c"libelf.so.1", package: "libelf1", handle: OnceLock::new() };
static Z: Library = Library { file: c"libz.so.1", package: "zlib1g", handle: OnceLock::new() };

static M: Library = Library { file: c"libm.so.6", package: "libc6", handle: OnceLock::new() };

/// Loads libelf, unless that is done. What is refused here is refused to libbpf too, which says less.
///
/// # Errors
/// What the loader said, and which package has it.
pub fn load_elf() -> Result<(), String> {
    ELF.handle().map(drop)
}

impl Library {
    fn handle(&self) -> Result<&Handle, String> {
        self.handle.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)
    }

    fn open(&self) -> Result<Handle, String> {
        // SAFETY: the name is a C string; what the library runs when it is loaded is its own.
        let handle = unsafe { libc::dlopen(self.file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            let file = self.file.to_string_lossy();
            return Err(format!("cannot load {file} (package {}): {}", self.package, said()));
        }
        Ok(Handle(handle))
    }

    /// The address of a function; null without the library or where it has no such function.
    fn function(&self, name: &CStr) -> Word {
        let Ok(handle) = self.handle() else { return std::ptr::null_mut() };
        // SAFETY: the handle is of a library that is never closed, the name a C string.
        unsafe { libc::dlsym(handle.0, name.as_ptr()) }
    }
}

/// What went wrong last in the loader.
fn said() -> String {
    // SAFETY: takes no arguments; what it returns is valid until the next call of this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason is told".to_owned();
    }
    // SAFETY: a C string, copied before the loader is called again.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

macro_rules! passed_on {
    ($library:ident, $type:ty, else $otherwise:expr; $($name:ident($($argument:ident),*);)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $type {
            type Function = unsafe extern "C" fn($($argument: $type),*) -> $type;
            static FOUND: OnceLock<Option<Function>> = OnceLock::new();
            let found = FOUND.get_or_init(|| {
                let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                let address = $library.function(name.ok()?);
                // SAFETY: null, which is `None`, or the library's function of this name, which
                // takes and returns what is declared here.
                unsafe { std::mem::transmute::<Word, Option<Function>>(address) }
            });
            // SAFETY: the caller called with what this function takes.
            found.map_or($otherwise, |function| unsafe { function($($argument),*) })
        }
    )* };
}

const NULL: Word = std::ptr::null_mut();
/// −1 of any width.
const FAILED: Word = std::ptr::without_provenance_mut(usize::MAX);
/// `Z_STREAM_ERROR`, −2.
const NO_STREAM: Word = std::ptr::without_provenance_mut(usize::MAX - 1);

// These return a pointer, a number whose error is 0, or a status that is looked at after another of
// them has failed.
passed_on! { ELF, Word, else NULL;
    elf64_getehdr(elf);
    elf64_getshdr(section);
    elf64_newehdr(elf);
    elf_begin(fd, command, other);
    elf_end(elf);
    elf_errmsg(error);
    elf_getdata(section, data);
    elf_getscn(elf, index);
    elf_kind(elf);
    elf_memory(image, size);
    elf_ndxscn(section);
    elf_newdata(section);
    elf_newscn(elf);
    elf_nextscn(elf, section);
    elf_rawdata(section, data);
    elf_strptr(elf, index, offset);
    elf_version(version);
    gelf_getclass(elf);
    gelf_getehdr(elf, into);
    gelf_getnote(data, offset, into, name, description);
    gelf_getphdr(elf, number, into);
    gelf_getshdr(section, into);
    gelf_getsym(data, number, into);
    gelf_getverdaux(data, offset, into);
    gelf_getverdef(data, offset, into);
    gelf_getversym(data, number, into);
}

// The error of these is −1.
passed_on! { ELF, Word, else FAILED;
    elf_getphdrnum(elf, into);
    elf_getshdrnum(elf, into);
    elf_getshdrstrndx(elf, into);
    elf_update(elf, command);
}

passed_on! { Z, Word, else NULL;
    gzopen(path, mode);
    gzopen64(path, mode);
    gzgets(file, into, size);
}

passed_on! { Z, Word, else NO_STREAM;
    gzclose(file);
}

// What `f64` asks of the C library here. Another function brings libm back into what is loaded at the
// start, which a test of the command notices; it is to be added here.
passed_on! { M, f64, else f64::NAN;
    exp(x);
    log(x);
    log10(x);
    log1p(x);
    log2(x);
    pow(x, y);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libelf_is_loaded_and_answers() {
        load_elf().unwrap();
        // EV_CURRENT is 1, and what it knows best.
        // SAFETY: takes a number.
        let version = unsafe { elf_version(std::ptr::without_provenance_mut(1)) };
        assert_eq!(version.addr() as u32, 1);
    }

    #[test]
    fn mathematics_are_those_of_the_library() {
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-15, "{found}");
        near(std::hint::black_box(1.0f64).exp(), std::f64::consts::E);
        near(std::hint::black_box(2.0f64).ln(), std::f64::consts::LN_2);
        near(std::hint::black_box(2.0f64).log10(), std::f64::consts::LOG10_2);
        near(std::hint::black_box(8.0f64).log2(), 3.0);
        near(std::hint::black_box(1.0f64).ln_1p(), std::f64::consts::LN_2);
        near(std::hint::black_box(2.0f64).powf(0.5), std::f64::consts::SQRT_2);
    }

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_package() {
        let none = Library { file: c"libnone.so.9", package: "none", handle: OnceLock::new() };
        let error = none.handle().map(drop).unwrap_err();
        assert!(error.starts_with("cannot load libnone.so.9 (package none): "), "{error}");
        assert!(none.function(c"f").is_null());
    }
}
