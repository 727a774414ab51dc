//! Tests of the certificates and keys that are taken.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use iotomy_record::one_line;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;

/// A certificate and its key, in a directory of their own.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        files.write_certificate(2020, 2100);
        files
    }

    /// Of these years.
    fn write_certificate(&self, from: i32, until: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([String::from("localhost")]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        self.write("c.pem", certificate.pem().as_bytes());
        self.write("k.pem", key.serialize_pem().as_bytes());
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.folder.path().join(name), bytes).unwrap();
        self.set_mode(name, 0o600);
    }

    fn set_mode(&self, name: &str, mode: u32) {
        let open = PermissionsExt::from_mode(mode);
        fs::set_permissions(self.folder.path().join(name), open).unwrap();
    }

    fn read(&self) -> Result<Certificate> {
        let path = |name: &str| self.folder.path().join(name);
        Certificate::read(&TlsFiles { certificate: path("c.pem"), key: path("k.pem") })
    }

    /// Why they are not taken.
    fn refused(&self) -> String {
        let error = self.read().err().expect("they are taken");
        let text = one_line(error.as_ref());
        assert!(text.contains(self.folder.path().to_str().unwrap()), "{text}");
        text
    }
}

#[test]
fn a_certificate_that_holds_is_taken_and_has_its_end() {
    let files = Files::new();
    // The first moment of 2100.
    assert_eq!(files.read().unwrap().expiry(), Duration::from_secs(4_102_444_800));
}

#[test]
fn one_that_does_not_hold_now_is_refused() {
    let files = Files::new();
    files.write_certificate(2019, 2020);
    let error = files.refused();
    assert!(error.ends_with("it expired at 2020-01-01T00:00:00.000Z"), "{error}");
    files.write_certificate(2100, 2101);
    let error = files.refused();
    assert!(error.ends_with("it is valid from 2100-01-01T00:00:00.000Z on"), "{error}");
}

#[test]
fn the_key_of_another_one_is_refused() {
    let files = Files::new();
    files.write("k.pem", KeyPair::generate().unwrap().serialize_pem().as_bytes());
    let error = files.refused();
    assert!(error.contains(" is not that of the certificate "), "{error}");
}

#[test]
fn files_without_what_they_should_have_are_refused() {
    let files = Files::new();
    let path = |name: &str| files.folder.path().join(name);
    let (certificate, key) = (fs::read(path("c.pem")).unwrap(), fs::read(path("k.pem")).unwrap());
    files.write("c.pem", b"");
    assert!(files.refused().contains("there is no certificate in "), "{}", files.refused());
    files.write("c.pem", &key);
    assert!(files.refused().contains("there is no certificate in "), "{}", files.refused());
    files.write("c.pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert!(files.refused().contains("it is not valid: "), "{}", files.refused());
    files.write("c.pem", &certificate);
    files.write("k.pem", &certificate);
    assert!(files.refused().contains("there is no private key in "), "{}", files.refused());
    files.write("k.pem", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n");
    assert!(files.refused().contains("is encrypted"), "{}", files.refused());
    files.write("k.pem", &key);
    files.set_mode("k.pem", 0o644);
    assert!(files.refused().contains("everyone may read it"), "{}", files.refused());
    files.set_mode("k.pem", 0o600);
    files.set_mode("c.pem", 0o666);
    assert!(files.refused().contains("cannot use the certificate "), "{}", files.refused());
    fs::remove_file(path("c.pem")).unwrap();
    assert!(files.refused().contains("No such file or directory"), "{}", files.refused());
}
