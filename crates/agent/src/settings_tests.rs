//! Tests of what the agent is told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn args(words: &[&str]) -> Args {
    Args::try_parse_from([&["iotomy-agent"], words].concat()).unwrap()
}

#[test]
fn the_command_line_counts_more_than_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let named = ["--config", file.to_str().unwrap()];
    fs::write(
        &file,
        "listen = '[::1]:0'\nby = 'title'\ncgroup = ['/a/*', '/b']\nmax-services = 7\n\
         budget = '0.5%'\notlp = 'http://[::1]:4318'\notlp-interval = 5\n",
    )
    .unwrap();
    let of_file = Settings {
        listen: "[::1]:0".parse().unwrap(),
        tls: None,
        token_file: None,
        cgroups: vec!["/a/*".into(), "/b".into()],
        by: By::Title,
        max_services: 7,
        budget: Share::parse("0.5%").ok(),
        otlp: Endpoint::parse("http://[::1]:4318").ok(),
        otlp_interval: 5,
    };
    assert_eq!(Settings::read(&args(&named)).unwrap(), of_file);
    let given = ["--listen", "127.0.0.1:1", "--cgroup", "/c", "--by", "image"];
    let otlp = ["--otlp", "http://a", "--otlp-interval", "6"];
    let more = ["--max-services", "9", "--budget", "100%"];
    let all = [&named[..], &given, &more, &otlp].concat();
    let given = Settings {
        listen: "127.0.0.1:1".parse().unwrap(),
        tls: None,
        token_file: None,
        cgroups: vec!["/c".into()],
        by: By::Image,
        max_services: 9,
        budget: Share::parse("100%").ok(),
        otlp: Endpoint::parse("http://a").ok(),
        otlp_interval: 6,
    };
    assert_eq!(Settings::read(&args(&all)).unwrap(), given);
    fs::write(&file, "").unwrap();
    let usual = Settings {
        listen: LISTEN,
        tls: None,
        token_file: None,
        cgroups: Vec::new(),
        by: By::Image,
        max_services: MAX_SERVICES,
        budget: None,
        otlp: None,
        otlp_interval: OTLP_INTERVAL,
    };
    assert_eq!(Settings::read(&args(&named)).unwrap(), usual);
    assert_eq!(Settings::read(&args(&[])).unwrap(), usual);
    let error = Settings::read(&args(&["--otlp-interval", "5"])).unwrap_err().to_string();
    assert!(error.starts_with("otlp-interval is given without otlp"), "{error}");
    fs::write(&file, "otlp-interval = 5\n").unwrap();
    assert!(Settings::read(&args(&named)).is_err());
    assert!(Settings::read(&args(&[&named[..], &["--otlp", "http://a"]].concat())).is_ok());
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_line() {
    for (text, line, what) in [
        ("\nmax-service = 7", 2, "there is no option \"max-service\"; is it max-services?"),
        ("colour = 1", 1, "there is no option \"colour\""),
        ("budget = 1", 1, "budget: expected a text in quotes"),
        ("budget = '1'", 1, "budget: invalid percentage: expected something like 1%"),
        ("budget = '0%'", 1, "budget: invalid percentage: expected 0.0001% to 100%"),
        ("by = 'image'\n\nlisten = 1", 3, "listen: expected a text in quotes"),
        ("tls-cert = 1", 1, "tls-cert: expected a text in quotes"),
        ("tls-key = ''", 1, "tls-key: a path is empty"),
        ("token-fil = 'a'", 1, "there is no option \"token-fil\"; is it token-file?"),
        ("allow-plain = 'yes'", 1, "allow-plain: expected true or false"),
        ("listen = 'localhost:1'", 1, "listen: invalid address"),
        ("by = 'pid'", 1, "by: invalid variable"),
        ("max-services = 0", 1, "max-services: expected a number from 1 to 10000"),
        ("max-services = '7'", 1, "max-services: expected a number"),
        ("otlp = 'https://a'", 1, "otlp: https is not supported"),
        ("otlp = 4318", 1, "otlp: expected a text in quotes"),
        ("otlp-interval = 0", 1, "otlp-interval: expected a number from 1 to 3600"),
        ("otlp-interval = 1.5", 1, "otlp-interval: expected a number"),
        ("cgroup = ['/a', 1]", 1, "cgroup: expected a text in quotes"),
        ("cgroup = ['']", 1, "cgroup: a pattern is empty"),
        ("by = 'image'\nby = 'title'", 2, "duplicate key"),
        ("a\nb", 1, "key"),
    ] {
        let (at, error) = file::options(text).unwrap_err();
        assert!(error.contains(what), "{text}: {error}");
        assert_eq!(at, line, "{text}: {error}");
    }
}

#[test]
fn a_file_that_others_can_write_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let read = || {
        let args = args(&["--config", file.to_str().unwrap()]);
        Settings::read(&args).unwrap_err().to_string()
    };
    assert!(read().contains("make one (it may be empty), or leave out --config"));
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    assert!(read().starts_with("cannot follow the configuration "), "{}", read());
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    fs::write(&file, b"by = '\xff'").unwrap();
    let args = args(&["--config", file.to_str().unwrap()]);
    let error = iotomy_record::one_line(Settings::read(&args).unwrap_err().as_ref());
    assert!(error.ends_with("it is not UTF-8 text"), "{error}");
}

#[test]
fn others_are_served_with_tls_and_a_token_or_because_it_is_said_that_neither_is_wanted() {
    let (tls, token) = (["--tls-cert", "/c", "--tls-key", "/k"], ["--token-file", "/t"]);
    let read = |listen: &str, more: &[&[&str]]| {
        let words = [&[&["--listen", listen][..]], more].concat().concat();
        Settings::read(&args(&words)).map_err(|error| error.to_string())
    };
    for other in ["0.0.0.0:9979", "[::]:9979", "10.0.0.1:80", "[::ffff:10.0.0.1]:80"] {
        for (given, missing) in [
            (&[][..], "give tls-cert, tls-key and token-file, too"),
            (&[&tls[..]], "give token-file, too"),
            (&[&token[..]], "give tls-cert and tls-key, too"),
        ] {
            let error = read(other, given).unwrap_err();
            assert!(error.contains("is not a loopback address"), "{error}");
            assert!(error.contains(missing) && error.contains("allow-plain"), "{error}");
        }
        assert_eq!(read(other, &[&["--allow-plain"]]).unwrap().tls, None);
        let settings = read(other, &[&tls, &token]).unwrap();
        assert_eq!(settings.tls.unwrap().key, Path::new("/k"));
    }
    for own in ["127.0.0.1:9979", "127.8.8.8:1", "[::1]:0"] {
        let settings = read(own, &[]).unwrap();
        assert_eq!((settings.listen.to_string().as_str(), settings.tls), (own, None));
        assert_eq!(read(own, &[&token]).unwrap().token_file, Some("/t".into()));
    }
    let error = read("[::1]:0", &[&tls[..2]]).unwrap_err();
    assert_eq!(error, "tls-cert is given without tls-key: give its private key, too");
    let error = read("[::1]:0", &[&tls[2..]]).unwrap_err();
    assert_eq!(error, "tls-key is given without tls-cert: give its certificate, too");
}

#[test]
fn a_file_names_others_from_its_own_directory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let text = "listen = '[::]:1'\ntls-cert = 'c.pem'\ntls-key = '/k.pem'\ntoken-file = 'a/t'\n";
    fs::write(&file, text).unwrap();
    let named = ["--config", file.to_str().unwrap()];
    let settings = Settings::read(&args(&named)).unwrap();
    let tls = settings.tls.unwrap();
    assert_eq!(tls.certificate, folder.path().join("c.pem"));
    assert_eq!(tls.key, Path::new("/k.pem"));
    assert_eq!(settings.token_file, Some(folder.path().join("a/t")));
    // The command line does so from the working directory.
    let given = Settings::read(&args(&[&named[..], &["--tls-cert", "c.pem"]].concat())).unwrap();
    assert_eq!(given.tls.unwrap().certificate, Path::new("c.pem"));
    fs::write(&file, "listen = '[::]:1'\nallow-plain = false\n").unwrap();
    assert!(Settings::read(&args(&named)).is_err());
    fs::write(&file, "listen = '[::]:1'\nallow-plain = true\n").unwrap();
    assert!(Settings::read(&args(&named)).is_ok());
}
