//! `ad serve` in front of servers, and before clients, that others wrote.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Ended, lastbyte, run};
use lastbyte_ad::test_servers::isolate;
use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use super::{Files, NAME, PATIENCE, Program, SERVER, chain, serve_in_front_of};

/// Another client than the server's own address.
const CLIENT: &str = "127.0.0.5";

#[test]
fn nginx_and_haproxy_learn_whose_connections_they_have() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let nginx = "listen 127.0.0.1:8080 proxy_protocol; \
                 location / { return 200 \"$proxy_protocol_addr to $proxy_protocol_server_port\"; }";
    let _nginx = start_nginx(files.folder.path(), &[nginx]);
    let haproxy = files.folder.path().join("haproxy.cfg");
    fs::write(
        &haproxy,
        "defaults\n mode http\n timeout client 10s\n timeout server 10s\n timeout connect 10s\n\
         frontend plain\n bind 127.0.0.1:8081 accept-proxy\n \
         http-request return status 200 content-type text/plain \
         lf-string \"%[src] to %[dst_port] for %[fc_pp_authority]\"\n",
    )
    .unwrap();
    let _haproxy = Program::start(Command::new("haproxy").arg("-f").arg(&haproxy));
    wait_for("127.0.0.1:8081");
    for (backend, option, told) in [
        ("127.0.0.1:8080", "--proxy-protocol", "127.0.0.5 to 443"),
        ("127.0.0.1:8080", "--proxy-protocol=v2", "127.0.0.5 to 443"),
        (
            "127.0.0.1:8081",
            "--proxy-protocol=v1",
            "127.0.0.5 to 443 for ",
        ),
        (
            "127.0.0.1:8081",
            "--proxy-protocol=v2",
            "127.0.0.5 to 443 for server.example",
        ),
    ] {
        let server = serve_in_front_of(backend, &[&files], &[option]);
        let ended = curl(&files, &[]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), told),
            "{option}: {ended:?}"
        );
        server.stop(Signal::SIGTERM);
    }
}

#[test]
fn load_balancers_say_whose_connections_they_bring_and_nobody_else() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let haproxy = files.folder.path().join("haproxy.cfg");
    let front = |port, how| {
        format!(
            "listen tls{port}\n mode tcp\n bind 127.0.0.8:{port}\n \
             server ad 127.0.0.9:443 source 127.0.0.8 {how}\n"
        )
    };
    fs::write(
        &haproxy,
        format!(
            "defaults\n timeout client 10s\n timeout server 10s\n timeout connect 10s\n{}{}{}",
            front(4431, "send-proxy"),
            front(4432, "send-proxy-v2"),
            front(4433, ""),
        ),
    )
    .unwrap();
    let nginx = "listen 127.0.0.1:8080 proxy_protocol; \
                 location / { return 200 $proxy_protocol_addr; }";
    let _nginx = start_nginx(files.folder.path(), &[nginx]);
    let options = ["--accept-proxy-protocol", "127.0.0.8", "--proxy-protocol"];
    let server = serve_in_front_of("127.0.0.1:8080", &[&files], &options);
    let _haproxy = Program::start(Command::new("haproxy").arg("-f").arg(&haproxy));
    wait_for("127.0.0.8:4431");
    let through = |port| {
        let to = format!("{NAME}:443:127.0.0.8:{port}");
        curl(&files, &["--connect-to", &to])
    };
    for port in [4431, 4432] {
        assert_eq!(through(port).stdout, CLIENT);
    }
    assert_ne!(through(4433).code, Some(0));
    server.line_with("the load balancer's PROXY protocol failed");
    assert_eq!(curl(&files, &[]).stdout, CLIENT, "it comes by itself");
}

#[test]
fn curl_chooses_a_protocol_which_has_its_backend() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let answer =
        "location / { return 200 \"$server_protocol at $server_port of $proxy_protocol_addr\"; }";
    let [http1, http2] = ["8080 proxy_protocol", "8082 http2 proxy_protocol"]
        .map(|listen| format!("listen 127.0.0.1:{listen}; {answer}"));
    let _nginx = start_nginx(files.folder.path(), &[&http1, &http2]);
    let options = [
        "--alpn",
        "h2,http/1.1",
        "--proxy-protocol=v2",
        "--backend",
        "h2=127.0.0.1:8082",
    ];
    let server = serve_in_front_of("127.0.0.1:8080", &[&files], &options);
    for (option, told) in [
        ("--http2", "HTTP/2.0 at 8082 of 127.0.0.5"),
        ("--http1.1", "HTTP/1.1 at 8080 of 127.0.0.5"),
        ("--no-alpn", "HTTP/1.1 at 8080 of 127.0.0.5"),
    ] {
        let ended = curl(&files, &[option]);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), told),
            "{option}: {ended:?}"
        );
    }
    server.stop(Signal::SIGTERM);
    // Nothing in common is an alert (RFC 7301, section 3.2).
    let _server = serve_in_front_of("127.0.0.1:8080", &[&files], &["--alpn", "h3"]);
    let ended = curl(&files, &["--http1.1"]);
    assert!(
        ended.stderr.contains("no application protocol"),
        "{ended:?}"
    );
}

#[test]
fn requests_say_whose_they_are_whatever_the_client_says() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let folder = files.folder.path();
    let large: String = (0..200_000).map(|number| format!("{number}\n")).collect();
    fs::write(folder.join("large"), &large).unwrap();
    let nginx = format!(
        "listen 127.0.0.1:8080; root {};
         location /large {{ }}
         location / {{ return 200 \"$http_x_forwarded_for,$http_x_forwarded_proto,$http_forwarded,$http_host,$request_uri\"; }}",
        folder.display()
    );
    let _nginx = start_nginx(folder, &[&nginx]);
    let server = serve_in_front_of("127.0.0.1:8080", &[&files], &["--forwarded-for"]);
    let told = "127.0.0.5,https,,server.example,/";
    let lies = [
        "-H",
        "X-Forwarded-For: 6.6.6.6",
        "-H",
        "Forwarded: for=6.6.6.6",
        "-H",
        "X-Forwarded-Proto: http",
    ];
    for options in [
        &[][..],
        &lies,
        &["-H", "Connection: X-Forwarded-For"],
        &["--http1.0"],
        &["-d", "a=b"],
    ] {
        let ended = curl(&files, options);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(0), told),
            "{options:?}: {ended:?}"
        );
    }
    let url = format!("https://{NAME}/large");
    // Two on one connection, with bodies up and down.
    let body = format!("@{}/large", folder.display());
    for options in [&[url.as_str()][..], &["--data-binary", &body, &url]] {
        let ended = curl(&files, options);
        assert!(ended.stdout == large.clone() + told, "{}", ended.stderr);
    }
    server.stop(Signal::SIGTERM);
    let _server = serve_in_front_of("127.0.0.1:1", &[&files], &["--forwarded-for"]);
    let ended = curl(&files, &["-w", "%{http_code}"]);
    assert_eq!(ended.stdout, "502", "{ended:?}");
}

#[test]
fn prometheus_reads_what_is_counted() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let nginx = "listen 127.0.0.1:8080; location / { return 200 hello; }";
    let _nginx = start_nginx(files.folder.path(), &[nginx]);
    let log = files.folder.path().join("access.log");
    let options = [
        "--metrics",
        "127.0.0.1:9100",
        "--log-format",
        "json",
        "--access-log",
    ];
    let options = [&options[..], &[log.to_str().unwrap()]].concat();
    let server = serve_in_front_of("127.0.0.1:8080", &[&files], &options);
    assert_eq!(curl(&files, &[]).stdout, "hello");
    let failed = curl(&files, &["--tls-max", "1.2"]);
    assert_eq!(failed.code, Some(35), "{failed:?}");
    let line: Value = serde_json::from_str(&server.line_with("the handshake failed")).unwrap();
    assert_eq!(line["reason"], "unsupported protocol", "{line}");
    let metrics = run(Command::new("curl").args(["-s", "http://127.0.0.1:9100/metrics"])).stdout;
    for line in [
        "lastbyte_ad_connections_total 2",
        "lastbyte_ad_handshakes_total{delivery=\"whole\"} 1",
        "lastbyte_ad_handshakes_failed_total 1",
        "lastbyte_ad_handshake_seconds_count 1",
        "lastbyte_ad_failures_total{what=\"the handshake\",reason=\"unsupported protocol\"} 1",
        "lastbyte_ad_previous_chains 0",
    ] {
        assert!(metrics.lines().any(|own| own == line), "{line}: {metrics}");
    }
    let expiry = "lastbyte_ad_chain_expiry_timestamp_seconds{name=\"server.example\",digest=";
    assert!(metrics.contains(expiry), "{metrics}");
    let path = files.folder.path().join("metrics");
    fs::write(&path, &metrics).unwrap();
    let mut promtool = Command::new("promtool");
    promtool
        .args(["check", "metrics"])
        .stdin(fs::File::open(&path).unwrap());
    let output = promtool
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let other = run(Command::new("curl").args([
        "-s",
        "-o/dev/null",
        "-w",
        "%{http_code}",
        "http://127.0.0.1:9100/",
    ]));
    assert_eq!(other.stdout, "404");

    // Who moves the log away gets a new one.
    let moved = log.with_extension("1");
    until(|| fs::read_to_string(&log).unwrap_or_default().lines().count() == 2);
    fs::rename(&log, &moved).unwrap();
    kill(server.pid(), Signal::SIGHUP).unwrap();
    until(|| log.exists());
    assert_eq!(curl(&files, &[]).stdout, "hello");
    until(|| fs::read_to_string(&log).unwrap().ends_with('\n'));
    let line: Value = serde_json::from_str(&fs::read_to_string(&log).unwrap()).unwrap();
    assert_eq!(line["name"], NAME);
}

#[test]
fn unknown_names_are_refused_if_that_is_asked_for() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let nginx = "listen 127.0.0.1:8080; location / { return 200 hello; }";
    let _nginx = start_nginx(files.folder.path(), &[nginx]);
    let _server = serve_in_front_of("127.0.0.1:8080", &[&files], &["--strict-names"]);
    assert_eq!(curl(&files, &[]).stdout, "hello");
    let mut other = Command::new("curl");
    other.args([
        "-sSk",
        "--resolve",
        "other.example:443:127.0.0.9",
        "https://other.example/",
    ]);
    let ended = run(&mut other);
    assert!(ended.stderr.contains("unrecognized name"), "{ended:?}");
    let ended = run(Command::new("curl").args(["-sSk", "https://127.0.0.9/"]));
    assert!(ended.stderr.contains("unrecognized name"), "{ended:?}");
}

#[test]
fn silent_clients_do_not_use_up_the_files_of_a_server() {
    isolate();
    let files = Files::new(&chain("ecdsa-p256"));
    let nginx = "listen 127.0.0.1:8080; location / { return 200 hello; }";
    let _nginx = start_nginx(files.folder.path(), &[nginx]);
    // For 50 connections: each takes two, and 64 are kept for the rest.
    let mut command = serve_with_descriptors(&files, 164);
    let server = Program::start(&mut command);
    server.line_with("serving on");
    let silent: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(SERVER).unwrap())
        .collect();
    // Within less than a handshake may take, which is when silent ones are closed anyway.
    let ended = curl(&files, &["--max-time", "5"]);
    assert_eq!(ended.stdout, "hello", "{ended:?}");
    kill(server.pid(), Signal::SIGHUP).unwrap();
    server.line_with("the chains are loaded again");
    drop(silent);
}

#[test]
fn too_few_descriptors_are_told_before_anybody_connects() {
    let files = Files::new(&chain("ecdsa-p256"));
    // Each connection takes two, and 64 are kept for the rest: one too few for 16.
    let refused = run(&mut serve_with_descriptors(&files, 64 + 2 * 16 - 1));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let expected = "files for 15 connections at a time, and fewer than 16 serve nobody: raise the limit (ulimit -n, LimitNOFILE=)";
    assert!(refused.stderr.contains(expected), "{refused:?}");
}

/// A server with so many file descriptors.
fn serve_with_descriptors(files: &Files, descriptors: usize) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -n {descriptors} && exec \"$@\"");
    command.args(["-c", &script, "sh"]);
    command.arg(lastbyte([""; 0]).get_program());
    command.args(["ad", "serve", "--listen", SERVER]);
    command.args(["--backend", "127.0.0.1:8080", "--chain"]);
    command.arg(&files.chain).arg("--key").arg(&files.key);
    command
}

/// What curl gets, from an address of its own.
fn curl(files: &Files, options: &[&str]) -> Ended {
    let resolve = format!("{NAME}:443:{}", SERVER.trim_end_matches(":443"));
    let mut command = Command::new("curl");
    command.args([
        "-sS",
        "--max-time",
        "60",
        "--interface",
        CLIENT,
        "--resolve",
        &resolve,
    ]);
    command.arg("--cacert").arg(&files.root).args(options);
    run(command.arg(format!("https://{NAME}/")))
}

/// nginx with these contents of servers.
fn start_nginx(folder: &Path, servers: &[&str]) -> Program {
    let own = folder.display();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths: String = paths
        .iter()
        .map(|path| format!("{path}_temp_path {own}/{path};\n"))
        .collect();
    let contents: String = servers
        .iter()
        .map(|server| format!("server {{ {server} }}\n"))
        .collect();
    let configuration = folder.join("nginx.conf");
    // As root it would give its files to another user, who may not enter the folder.
    let text = format!(
        "user root;\ndaemon off;\nmaster_process off;\npid {own}/nginx.pid;\nerror_log stderr;\n\
         events {{ }}\nhttp {{\naccess_log off;\nclient_max_body_size 10m;\n\
         error_page 405 =200 $uri;\n{paths}{contents}}}\n"
    );
    fs::write(&configuration, text).unwrap();
    let mut nginx = Command::new("nginx");
    nginx.env(
        "PATH",
        format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()),
    );
    let program = Program::start(nginx.arg("-p").arg(folder).arg("-c").arg(&configuration));
    for server in servers {
        let address = server
            .trim_start_matches("listen ")
            .split([' ', ';'])
            .next();
        wait_for(address.unwrap());
    }
    program
}

fn wait_for(address: &str) {
    until(|| TcpStream::connect(address).is_ok());
}

fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "it does not come about");
        thread::sleep(Duration::from_millis(20));
    }
}
