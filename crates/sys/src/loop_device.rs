//! Loop devices, loop(4): a file as a block device.
//!
//! The one invariant: the kernel removes the device. It is set up with `LO_FLAGS_AUTOCLEAR`, so
//! that it goes with its last user, however this process ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `<linux/loop.h>`.
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4c82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4c0a;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `<linux/fs.h>`: `_IO(0x12, 97)`.
const BLKFLSBUF: libc::Ioctl = 0x1261;

/// The label of the device in `lo_file_name`.
const LABEL: &[u8] = b"iotomy";

/// Devices that another process took between the search and the request.
const TRIES: u32 = 32;

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    real_device: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

const _: () = assert!(size_of::<Info>() == 232 && size_of::<Config>() == 304);

/// A loop device in use by this process.
#[derive(Debug)]
pub struct LoopDevice {
    device: File,
    path: String,
}

impl LoopDevice {
    /// Makes a block device of a file. `past_the_cache` has the device read and write the file by
    /// direct I/O, where its file system can.
    ///
    /// # Errors
    /// The call that failed and the kernel's error: `EACCES` without privilege, `ENOENT` without
    /// the driver.
    pub fn attach(
        file: BorrowedFd<'_>,
        past_the_cache: bool,
    ) -> Result<Self, (&'static str, io::Error)> {
        let open = |path: &str| OpenOptions::new().read(true).write(true).open(path);
        let control = open("/dev/loop-control").map_err(|e| ("open /dev/loop-control", e))?;
        let mut last = io::Error::from_raw_os_error(libc::EBUSY);
        for _ in 0..TRIES {
            // SAFETY: the request takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
            if number < 0 {
                return Err(("ioctl LOOP_CTL_GET_FREE", io::Error::last_os_error()));
            }
            let path = format!("/dev/loop{number}");
            let device = match open(&path) {
                Ok(device) => device,
                Err(error) => return Err(("open /dev/loopN", error)),
            };
            match configure(&device, file, past_the_cache) {
                Ok(()) => return Ok(Self { device, path }),
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = error,
                Err(error) => return Err(("ioctl LOOP_CONFIGURE", error)),
            }
        }
        Err(("ioctl LOOP_CONFIGURE", last))
    }

    /// Its name: `/dev/loop0`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Writes dirty pages, and drops the kernel's cache of the device.
    ///
    /// # Errors
    /// `EACCES` without privilege.
    pub fn drop_cache(&self) -> io::Result<()> {
        self.device.sync_all()?;
        // SAFETY: the request's argument is not used.
        match unsafe { libc::ioctl(self.device.as_raw_fd(), BLKFLSBUF, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for LoopDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn configure(device: &File, file: BorrowedFd<'_>, past_the_cache: bool) -> io::Result<()> {
    // SAFETY: a zeroed `Config` is a valid value of the type (plain integers and bytes).
    let mut config: Config = unsafe { std::mem::zeroed() };
    config.fd = file.as_raw_fd().unsigned_abs();
    config.info.flags = LO_FLAGS_AUTOCLEAR;
    if past_the_cache {
        config.info.flags |= LO_FLAGS_DIRECT_IO;
    }
    config.info.file_name[..LABEL.len()].copy_from_slice(LABEL);
    // SAFETY: `config` is the structure the request reads, whole and live during the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_device_has_the_size_of_its_file_and_goes_with_its_last_user() {
        let file = tempfile();
        file.set_len(1 << 20).unwrap();
        let device = match LoopDevice::attach(file.as_fd(), false) {
            Ok(device) => device,
            Err((call, error)) => {
                return iotomy_test_requirements::skip(
                    iotomy_test_requirements::Need::Devices,
                    &format!("{call}: {error}"),
                );
            }
        };
        let name = device.path().trim_start_matches("/dev/").to_owned();
        let size = fs::read_to_string(format!("/sys/block/{name}/size")).unwrap();
        assert_eq!(size.trim(), "2048");
        let label = fs::read_to_string(format!("/sys/block/{name}/loop/autoclear")).unwrap();
        assert_eq!(label.trim(), "1");
        device.drop_cache().unwrap();
        let mine = || crate::loop_device::tests::backing_inode(&name);
        assert!(mine().is_some());
        drop(device);
        // A process that examines all devices (udev) may be its last user for a moment.
        iotomy_test_requirements::wait::until("the device is free", || mine().is_none());
    }

    fn tempfile() -> File {
        // SAFETY: the name ends in NUL.
        let fd = unsafe { libc::memfd_create(c"image".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0);
        // SAFETY: the kernel just made the descriptor and nobody else owns it.
        unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) }
    }

    /// The name of the file behind the device, while it is a memory file called image.
    fn backing_inode(name: &str) -> Option<String> {
        let path = format!("/sys/block/{name}/loop/backing_file");
        fs::read_to_string(path).ok().filter(|file| file.contains("memfd:image"))
    }
}
