#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use lastbyte_page::Named;

use super::guests::death;
use super::*;
use crate::study::{Client, PageSource, Server};

fn ended(code: i32, signal: i32) -> ExitStatus {
    ExitStatus::from_raw(code << 8 | signal)
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn programs_of_others_never_read_the_processors_counter() {
    let ours: Arm = "x25519/ecdsa-p256".parse().unwrap();
    assert_eq!(Counter::of(&ours, None), Counter::Host);
    for server in Server::ALL.iter().filter(|server| server.is_foreign()) {
        let foreign = Arm {
            server: *server,
            ..ours.clone()
        };
        assert_eq!(Counter::of(&foreign, None), Counter::Guest);
    }
    for client in Client::ALL.iter().filter(|client| client.is_foreign()) {
        let foreign = Arm {
            client: *client,
            ..ours.clone()
        };
        assert_eq!(Counter::of(&foreign, None), Counter::Guest);
    }
    let page = PageSource::Model(Named::Median2024);
    assert_eq!(Counter::of(&ours, Some(&page)), Counter::Guest);
}

#[test]
fn a_death_is_told_in_one_line() {
    for (status, console, reason) in [
        (
            ended(0, 6),
            "<6>some\n<0>Kernel panic - not syncing: Segfault with no mm\nmore",
            "its guest kernel panicked: Segfault with no mm",
        ),
        (
            ended(1, 0),
            "<4>Out of memory: Killed process 1 (lastbyte)\n<0>Kernel panic - not syncing: Attempted to kill init!",
            "its guest ran out of memory",
        ),
        (
            ended(0, 6),
            "memory allocation of 120 bytes failed\n<0>Kernel panic - not syncing: Attempted to kill init!",
            "its guest ran out of memory",
        ),
        (
            ended(0, 7),
            "",
            "its guest could not get memory: free some, or make /dev/shm larger \
             (it uses up to 256 MB for each processor)",
        ),
        (
            ended(0, 9),
            "Linux",
            "its guest was ended by signal 9, as the kernel does where a cgroup or the machine has no memory left: allow 256 MB for \
             each processor",
        ),
        (ended(0, 15), "Linux", "its guest was ended by signal 15"),
        (
            ended(1, 0),
            "lastbyte: no",
            "its guest ended early: lastbyte: no",
        ),
        (
            ended(1, 0),
            "",
            "its guest ended early, with exit status: 1",
        ),
    ] {
        assert_eq!(death(status, &lines(console), MEMORY), reason);
    }
}
