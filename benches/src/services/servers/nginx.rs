//! nginx, as one process that answers with a small file.
//!
//! A worker would outlive a master that is killed, so the master does the worker's work (`master_process off`): the
//! calls are the same.

use std::fs;
use std::process::Command;

use anyhow::{Context, Error};

use crate::servers::{Server, free_port, installed};
use crate::services::service::{Service, WRITEV};

use super::web::Web;

/// The size of the file, in bytes.
const SIZE: usize = 100;

pub(crate) static SERVICE: Service = Service {
    name: "nginx",
    summary: "nginx as one process without a log, asked by `wrk` with 16 connections for a file of 100 bytes",
    answer: WRITEV,
    comm: None,
    rare_call: "accept4",
    most: 1.12,
    aim: Some(1.05),
    versions,
    start: |_, scratch| {
        installed(&["nginx", "wrk"]).map_err(Error::msg)?;
        let (port, folder) = (free_port()?, scratch.join("nginx"));
        fs::create_dir(&folder).context("cannot make a folder")?;
        fs::write(folder.join("file"), "x".repeat(SIZE)).context("cannot write a file")?;
        let place = folder.to_str().context("a path is not UTF-8")?;
        fs::write(folder.join("conf"), configuration(place, port))
            .context("cannot write a file")?;
        let [conf, errors] = ["conf", "errors"].map(|name| format!("{place}/{name}"));
        let mut command = Command::new("nginx");
        let server = Server::on(port, command.args(["-e", &errors, "-c", &conf]))?;
        Ok(Box::new(Web { server, url: format!("http://127.0.0.1:{port}/file") }))
    },
};

/// The directives of an nginx that keeps everything in the directory `place`.
fn configuration(place: &str, port: u16) -> String {
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String =
        kinds.iter().map(|kind| format!("{kind}_temp_path {place}/{kind}; ")).collect();
    format!(
        "daemon off; master_process off; user root; pid {place}/pid; error_log {place}/errors;
         events {{ worker_connections 64; }}
         http {{
             {temporary}access_log off; sendfile on; keepalive_requests 1000000000;
             server {{ listen 127.0.0.1:{port}; root {place}; }}
         }}"
    )
}

/// It tells its version by an option of its own, on standard error.
fn versions() -> Vec<String> {
    let output = Command::new("nginx").arg("-v").output().ok();
    let text = output.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned());
    text.map(|text| text.replace("nginx version: ", "")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_kept_in_one_directory() {
        let text = configuration("/there", 80);
        assert!(text.contains("listen 127.0.0.1:80; root /there;"), "{text}");
        assert!(text.contains("fastcgi_temp_path /there/fastcgi; "), "{text}");
    }
}
