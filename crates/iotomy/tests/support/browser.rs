//! A headless Chromium, driven by chromedriver over WebDriver: JSON by HTTP on the loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use self::chromium::{ALONE, OPTIONS, missing};
use crate::support::{Need, bare, skip};

#[path = "../../../../benches/src/report/chromium.rs"]
mod chromium;

/// What ends the test ends the driver.
const WITH_THE_TEST: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
const DRIVER: &str = "chromedriver";

/// A browser with one window. It ends with this.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Where it keeps what browsers keep.
    _profile: TempDir,
}

/// Whether there is a browser; a test that needs one and finds none is skipped.
fn is_there() -> bool {
    let missing = missing(&["chromium", DRIVER, WITH_THE_TEST[0], ALONE[0]]);
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join(" and ");
    skip(Need::Browser, &format!("there is no {missing}; install chromium and chromium-driver"));
    false
}

impl Browser {
    /// Starts one with a window so wide and so high; none where there is no browser.
    pub(crate) fn start(wide: u32, high: u32) -> Option<Self> {
        if !is_there() {
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let mut driver = bare(WITH_THE_TEST[0], &WITH_THE_TEST[1..]);
        driver.args(ALONE).arg(DRIVER);
        driver.arg("--port=0").env("HOME", profile.path()).env("TMPDIR", profile.path());
        let mut driver = driver.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let port = port_of(&mut driver);
        let mut browser = Self { driver, port, session: String::new(), _profile: profile };
        let own = [
            "--hide-scrollbars".to_owned(),
            format!("--window-size={wide},{high}"),
            format!("--user-data-dir={}", browser._profile.path().join("profile").display()),
        ];
        let arguments: Vec<String> = OPTIONS.into_iter().map(str::to_owned).chain(own).collect();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            // A loaded machine is slow, and not broken.
            "timeouts": {"pageLoad": 600_000, "script": 600_000},
        }}});
        let made = browser.ask("POST", "/session", &wanted);
        browser.session = made["sessionId"].as_str().unwrap().to_owned();
        // What its own first page says and asks for is not looked at.
        browser.of_session("POST", "/url", &json!({"url": "about:blank"}));
        let _ = (browser.console_messages(), browser.requests());
        Some(browser)
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, page: &Path) {
        let url = format!("file://{}", page.display());
        self.of_session("POST", "/url", &json!({"url": url}));
    }

    /// What a script returns.
    pub(crate) fn run(&mut self, script: &str) -> Value {
        self.of_session("POST", "/execute/sync", &json!({"script": script, "args": []}))
    }

    /// The same, a number.
    pub(crate) fn count(&mut self, script: &str) -> u64 {
        let found = self.run(script);
        found.as_u64().unwrap_or_else(|| panic!("{script}: {found}"))
    }

    /// The same, a text.
    pub(crate) fn text(&mut self, script: &str) -> String {
        let found = self.run(script);
        found.as_str().unwrap_or_else(|| panic!("{script}: {found}")).to_owned()
    }

    /// Makes the window so wide and so high.
    pub(crate) fn resize(&mut self, wide: u32, high: u32) {
        // Windows have a least width; the size of the page in them has not.
        let metrics = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": wide, "height": high, "deviceScaleFactor": 1, "mobile": false,
        }});
        self.of_session("POST", "/goog/cdp/execute", &metrics);
    }

    /// Keeps a picture of all of the page.
    pub(crate) fn picture(&mut self, to: &Path) {
        let whole = json!({"cmd": "Page.captureScreenshot", "params": {
            "format": "png", "captureBeyondViewport": true,
        }});
        let png = self.of_session("POST", "/goog/cdp/execute", &whole);
        let png = unpacked(png["data"].as_str().unwrap());
        assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, png).unwrap();
    }

    /// Lets no page run its scripts from now on; what a test asks still runs.
    pub(crate) fn without_scripts(&mut self) {
        let off = json!({"cmd": "Emulation.setScriptExecutionDisabled", "params": {"value": true}});
        self.of_session("POST", "/goog/cdp/execute", &off);
    }

    /// Shows it as on `print` or, of an empty name, on the screen.
    pub(crate) fn print_media(&mut self, name: &str) {
        let media = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"media": name}});
        self.of_session("POST", "/goog/cdp/execute", &media);
    }

    /// Keeps the page as it is printed.
    pub(crate) fn paper(&mut self, to: &Path) {
        let a4 = json!({"cmd": "Page.printToPDF", "params": {
            "paperWidth": 8.27, "paperHeight": 11.69, "printBackground": true,
        }});
        let pdf = self.of_session("POST", "/goog/cdp/execute", &a4);
        let pdf = unpacked(pdf["data"].as_str().unwrap());
        assert!(pdf.starts_with(b"%PDF") && pdf.len() > 10_000);
        fs::write(to, pdf).unwrap();
    }

    /// Everything the console said since the last call.
    pub(crate) fn console_messages(&mut self) -> Vec<String> {
        let log = self.of_session("POST", "/se/log", &json!({"type": "browser"}));
        log.as_array().unwrap().iter().map(|entry| entry["message"].to_string()).collect()
    }

    /// The addresses that were asked for since the last call.
    pub(crate) fn requests(&mut self) -> Vec<String> {
        let log = self.of_session("POST", "/se/log", &json!({"type": "performance"}));
        let entries = log.as_array().unwrap().iter().filter_map(|entry| {
            let message: Value = serde_json::from_str(entry["message"].as_str()?).unwrap();
            let message = &message["message"];
            let asked = message["method"].as_str()?.starts_with("Network.requestWillBeSent");
            Some(message["params"]["request"]["url"].as_str()?.to_owned()).filter(|_| asked)
        });
        entries.collect()
    }

    fn of_session(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/session/{}{path}", self.session);
        self.ask(method, &path, body)
    }

    /// One request; the driver closes the connection behind its answer.
    fn ask(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .unwrap();
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(answer.read_line(&mut line).unwrap() > 0, "{method} {path}: no answer");
            let line = line.trim_end().to_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(n) = line.strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
        }
        let mut content = vec![0; length];
        answer.read_exact(&mut content).unwrap();
        let mut answer: Value = serde_json::from_slice(&content).unwrap();
        let value = answer["value"].take();
        assert!(value.get("error").is_none_or(Value::is_null), "{method} {path}: {value}");
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its first process is gone with this, and so all are.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// The port the driver says it listens at.
fn port_of(driver: &mut Child) -> u16 {
    let mut lines = BufReader::new(driver.stdout.take().unwrap());
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).unwrap() > 0, "chromedriver ended without a port");
        if let Some((_, port)) = line.split_once("successfully on port ") {
            let port: String = port.chars().take_while(char::is_ascii_digit).collect();
            // It goes on talking, to nobody.
            std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
            return port.parse().unwrap();
        }
    }
}

/// Bytes in base64.
fn unpacked(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for letter in text.bytes().filter(|letter| *letter != b'=') {
        bits = bits << 6 | u32::from(value(letter));
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

/// Where pictures of pages are kept.
pub(crate) fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-pages")
}
