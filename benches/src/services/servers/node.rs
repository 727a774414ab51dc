//! An HTTP server in Node.

use std::path::Path;
use std::process::Command;

use anyhow::Error;

use crate::run::version;
use crate::servers::{Server, installed};
use crate::services::service::{Service, WRITEV};

use super::web::Web;

/// It says its address and answers until it is killed; connections stay.
const SOURCE: &str = r#"
const server = require("http").createServer((request, response) => response.end("an answer\n"));
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log("127.0.0.1:" + server.address().port));
"#;

pub(crate) static SERVICE: Service = Service {
    name: "node",
    summary: "an `http` server in Node, asked by `wrk` with 16 connections",
    answer: WRITEV,
    comm: None,
    rare_call: "accept4",
    most: 1.05,
    aim: None,
    versions: || {
        version(Path::new("node")).map(|text| format!("node {text}")).into_iter().collect()
    },
    start: |_, _| {
        installed(&["node", "wrk"]).map_err(Error::msg)?;
        let (server, address) =
            Server::that_says_its_address(Command::new("node").args(["-e", SOURCE]))?;
        Ok(Box::new(Web { server, url: format!("http://{address}/") }))
    },
};
