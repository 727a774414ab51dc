//! An HTTP server in Go.

use anyhow::Error;

use crate::servers::{build_go, installed, start_go};
use crate::services::service::{Service, WRITE};

use super::web::Web;

pub(crate) static SERVICE: Service = Service {
    name: "go",
    summary: "the HTTP server in Go of this repository, asked by `wrk` with 16 connections",
    answer: WRITE,
    comm: None,
    rare_call: "accept4",
    most: 1.05,
    aim: None,
    // `go --version` and `wrk --version` are errors; the server is of this repository.
    versions: Vec::new,
    start: |_, folder| {
        installed(&["wrk"]).map_err(Error::msg)?;
        let program = build_go(folder).map_err(Error::msg)?;
        let (server, address) = start_go(&program)?;
        Ok(Box::new(Web { server, url: format!("http://{address}/") }))
    },
};
