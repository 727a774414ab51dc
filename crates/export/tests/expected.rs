//! What stands in tables, taken from the JSON of a record and not from the declarations of columns.

use serde_json::{Map, Value, json};

/// A row: the keys of the record, and others that a table has.
pub(crate) type Row = Map<String, Value>;

/// The rows of a table of a record.
pub(crate) fn rows(table: &str, record: &Value) -> Vec<Row> {
    match table {
        "calls" | "files" | "ledger" | "processes" | "threads" | "paths" | "slowest"
        | "connections" | "requests" | "ring_operations" => of_traces(table, record),
        "findings" => {
            let mut rows = of_traces(table, record);
            if is(record, "race") {
                rows.extend(items(&record["findings"]).map(|one| with(one, &[])));
            }
            rows
        }
        "race_runs" => commands(record).flat_map(|one| race_runs(one, record)).collect(),
        "comparisons" if is(record, "race") => {
            items(&record["comparisons"]).map(|one| with(one, &[])).collect()
        }
        "cases" | "claims" if is(record, "sweep") => {
            let experiment = ("experiment", record["experiment"].clone());
            items(&record[table]).map(|one| with(one, std::slice::from_ref(&experiment))).collect()
        }
        "layers" => layers(record),
        "runs" => vec![run(record)],
        _ => Vec::new(),
    }
}

pub(crate) fn is(record: &Value, kind: &str) -> bool {
    record["schema"] == format!("iotomy.{kind}/1")
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn with(row: &Value, more: &[(&str, Value)]) -> Row {
    let mut row = row.as_object().unwrap().clone();
    row.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    let exit = row.remove("exit").unwrap_or_default();
    row.insert("exit_code".to_owned(), exit["code"].clone());
    row.insert("exit_signal".to_owned(), exit["signal"].clone());
    row
}

fn commands(record: &Value) -> impl Iterator<Item = &Value> {
    items(&record["contenders"])
}

/// The traces of a record, with the labels of commands.
fn traces(record: &Value) -> Vec<(Value, &Value)> {
    match record {
        _ if is(record, "trace") => vec![(Value::Null, record)],
        _ if is(record, "anatomy") => vec![(Value::Null, &record["trace"])],
        _ => commands(record).map(|one| (one["label"].clone(), &one["trace"])).collect(),
    }
}

fn of_traces(table: &str, record: &Value) -> Vec<Row> {
    let of_trace = |(label, trace): (Value, &Value)| -> Vec<Row> {
        let row = |row| match with(row, &[("label", label.clone())]) {
            call if table == "calls" => with_on_cpu_times(call),
            row if table == "connections" => flat(row, "tcp"),
            row if table == "slowest" => flat(row, "woken_by"),
            row => row,
        };
        items(&trace[table]).map(row).collect()
    };
    traces(record).into_iter().flat_map(of_trace).collect()
}

/// The row with the keys of an object in it behind the object's own.
fn flat(mut row: Row, object: &str) -> Row {
    if let Some(Value::Object(parts)) = row.remove(object) {
        row.extend(parts.into_iter().map(|(key, value)| (format!("{object}_{key}"), value)));
    }
    row
}

/// A record leaves these times out where no call left its CPU.
fn with_on_cpu_times(mut call: Row) -> Row {
    let is_known = call.get("on_cpu_ns").is_some_and(|time| !time.is_null());
    if let Some(times) = call.get("wall_times").filter(|_| is_known).cloned() {
        call.entry("on_cpu_times").or_insert(times);
    }
    call
}

fn race_runs(command: &Value, record: &Value) -> Vec<Row> {
    let each = (1..).zip(items(&command["runs"]));
    each.map(|(number, run)| {
        let block = run["block"].as_u64().unwrap().to_string();
        let redone = record.pointer(&format!("/blocks/{block}/redone"));
        let more = [
            ("label", command["label"].clone()),
            ("command", command["command"].clone()),
            ("number", number.into()),
            ("redone", redone.cloned().unwrap_or_default()),
        ];
        with(run, &more)
    })
    .collect()
}

fn layers(record: &Value) -> Vec<Row> {
    let mut calls: Vec<(Value, &Value)> = Vec::new();
    if is(record, "anatomy") {
        calls.extend(items(&record["calls"]).map(|call| (Value::Null, call)));
    }
    for one in commands(record) {
        calls.extend(items(&one["sampled"]["calls"]).map(|call| (one["label"].clone(), call)));
    }
    let of_call = |(label, call): (Value, &Value)| -> Vec<Row> {
        let mut more = vec![("label", label)];
        let image = ["pid", "exec", "image", "syscall"];
        more.extend(image.map(|key| (key, call[key].clone())));
        items(&call["layers"]).map(|layer| with(layer, &more)).collect()
    };
    calls.into_iter().flat_map(of_call).collect()
}

/// The head of a record.
fn run(record: &Value) -> Row {
    let one_trace = match record {
        _ if is(record, "trace") => record,
        _ if is(record, "anatomy") => &record["trace"],
        _ => &Value::Null,
    };
    let of_end = if is(record, "d") { record } else { one_trace };
    let wall_ns = match record {
        _ if is(record, "sweep") => &record["run"]["wall_ns"],
        _ if is(record, "copy") || is(record, "d") => &record["wall_ns"],
        _ => &one_trace["wall_ns"],
    };
    let mut row = with(&machine(record), &[]);
    let name = one_trace["observer"]["name"].clone();
    row.extend(one_trace["observer"].as_object().cloned().unwrap_or_default());
    row.extend(with(
        &json!({ "exit": of_end["exit"] }),
        &[
            ("schema", record["schema"].clone()),
            ("command", one_trace["command"].clone()),
            ("wall_ns", wall_ns.clone()),
            ("observer", name),
        ],
    ));
    row
}

/// Where a record was made.
pub(crate) fn machine(record: &Value) -> Value {
    match is(record, "anatomy") {
        true => record["trace"]["machine"].clone(),
        false => record["machine"].clone(),
    }
}
