//! A program in the place of a browser or a server, which does what its own name says. It is no part of the tests' crate: guests run no
//! scripts, so `rustc` makes one program of it.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    let program = env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    match env::args().nth(1).as_deref() {
        Some("--version") => println!("Chromium 156.0.1.2"),
        Some("-V") => eprintln!("nginx version: nginx/1.29.0\nbuilt with OpenSSL 3.6.0"),
        _ if name == "nginx-ends" => {
            eprintln!("nginx: bad option");
            std::process::exit(9);
        }
        _ if name == "browser-hangs" || name == "nginx-deaf" => sleep(),
        _ => browse(&name),
    }
}

fn sleep() -> ! {
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

/// Speaks the debugging protocol, as far as a visit asks for it.
fn browse(name: &str) {
    let mut from = File::open("/proc/self/fd/3").unwrap();
    let mut to = OpenOptions::new().write(true).open("/proc/self/fd/4").unwrap();
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = from.read(&mut piece).unwrap();
        if count == 0 {
            return;
        }
        read.extend_from_slice(&piece[..count]);
        while let Some(end) = read.iter().position(|byte| *byte == 0) {
            let message: Vec<u8> = read.drain(..=end).collect();
            let message = String::from_utf8(message).unwrap();
            let id: String = after(&message, "\"id\":").chars().take_while(char::is_ascii_digit).collect();
            let method = after(&message, "\"method\":\"").split('"').next().unwrap().to_owned();
            let result = match method.as_str() {
                "Browser.getVersion" => r#"{"product":"Chrome/156.0.1.2"}"#,
                "Target.createBrowserContext" => r#"{"browserContextId":"C"}"#,
                "Target.createTarget" => r#"{"targetId":"F"}"#,
                "Target.attachToTarget" => r#"{"sessionId":"S"}"#,
                "Page.navigate" => r#"{"frameId":"F","loaderId":"L"}"#,
                _ => "{}",
            };
            say(&mut to, &format!(r#"{{"id":{id},"result":{result}}}"#));
            if method == "Page.navigate" {
                navigate(name, &mut to);
            }
        }
    }
}

fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.split_once(mark).unwrap().1
}

fn navigate(name: &str, to: &mut File) {
    ask(to, "L", "Document");
    event(to, "Network.responseReceived", r#""requestId":"L","type":"Document","response":{"status":200}"#);
    match name {
        "browser-never-paints" => {}
        // Looks at the clock for three seconds, and at nothing else.
        "browser-spins" => {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(3) {}
        }
        "browser-waits" => ask(to, "1", "Image"),
        "browser-asks-for-ever" => (0..10_001).for_each(|id| ask(to, &id.to_string(), "Image")),
        "browser-crashes" => event(to, "Inspector.targetCrashed", ""),
        name => panic!("{name}"),
    }
    event(to, "Network.loadingFinished", r#""requestId":"L","timestamp":2,"encodedDataLength":1"#);
    event(to, "Page.lifecycleEvent", r#""loaderId":"L","name":"load","timestamp":2"#);
}

fn ask(to: &mut File, id: &str, kind: &str) {
    let params = format!(
        r#""requestId":"{id}","type":"{kind}","timestamp":1,"wallTime":1,"request":{{"url":"https://server.example/{id}"}}"#
    );
    event(to, "Network.requestWillBeSent", &params);
}

fn event(to: &mut File, method: &str, params: &str) {
    say(to, &format!(r#"{{"method":"{method}","sessionId":"S","params":{{{params}}}}}"#));
}

fn say(to: &mut File, message: &str) {
    to.write_all(message.as_bytes()).unwrap();
    to.write_all(&[0]).unwrap();
}
