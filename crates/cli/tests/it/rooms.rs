//! What ARCHITECTURE.md says of rooms is what they import, and nothing flows back up.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A room, in the words of ARCHITECTURE.md's table.
struct Room {
    name: String,
    /// What it says that it uses.
    uses: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the table, from the top.
fn rooms() -> Vec<Room> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("\n## Rooms\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names = |cell: &str| -> BTreeSet<String> {
        let words = cell.split('`').skip(1).step_by(2);
        words.map(str::to_owned).collect()
    };
    let rows = rows.map(|row| row.split('|').collect::<Vec<_>>());
    rows.filter(|cells| cells.len() == 5 && cells[3].trim() != "and one line in")
        .map(|cells| Room {
            name: names(cells[1]).pop_first().unwrap(),
            uses: names(cells[3]),
        })
        .filter(|room| source(&room.name).exists())
        .collect()
}

/// Where a room's source is.
fn source(room: &str) -> PathBuf {
    let crates = root().join("crates");
    let (name, module) = room.split_once("::").unwrap_or((room, ""));
    let folder = name.trim_start_matches("lastbyte-");
    crates.join(folder).join("src").join(module)
}

/// What a table calls a room: without the name that all share.
fn short(room: &str) -> &str {
    let room = room.rsplit("::").next().unwrap();
    room.strip_prefix("lastbyte-").unwrap_or(room)
}

/// The files of a room that are not tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        if name.contains("test") || name.contains("fixtures") {
            continue;
        }
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files
}

/// What a room's code names of other rooms.
fn imports(room: &Room, rooms: &[Room]) -> BTreeMap<String, PathBuf> {
    let is_module = room.name.contains("::");
    let paths: Vec<(String, String)> = rooms
        .iter()
        .filter(|other| other.name != room.name)
        .filter_map(|other| {
            let path = match other.name.split_once("::") {
                // `lastbyte` has the modules of `lastbyte-results` as its own.
                Some((_, module)) if is_module => format!("crate::{module}::"),
                Some(_) => return None,
                None => format!("{}::", other.name.replace('-', "_")),
            };
            Some((short(&other.name).to_owned(), path))
        })
        .collect();
    let mut found = BTreeMap::new();
    for file in files(&source(&room.name)) {
        let text = fs::read_to_string(&file).unwrap();
        // A crate's own name stands in its examples.
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for (name, path) in &paths {
                if line.contains(path.as_str()) {
                    found.insert(name.clone(), file.clone());
                }
            }
        }
    }
    found
}

#[test]
fn rooms_use_what_architecture_says() {
    let rooms = rooms();
    assert_eq!(rooms.len(), 16);
    let names: BTreeSet<&str> = rooms.iter().map(|room| short(&room.name)).collect();
    for (floor, room) in rooms.iter().enumerate().skip(1) {
        let imports = imports(room, &rooms);
        for (other, file) in &imports {
            let (name, file) = (&room.name, file.display());
            assert!(
                room.uses.contains(other),
                "{name} uses {other}, of which ARCHITECTURE.md says nothing: {file}"
            );
            let below = rooms[floor + 1..].iter();
            assert!(
                below
                    .map(|room| short(&room.name))
                    .any(|below| below == other),
                "{name} uses {other}, which is above it: {file}"
            );
        }
        for said in room
            .uses
            .iter()
            .filter(|said| names.contains(said.as_str()))
        {
            assert!(
                imports.contains_key(said),
                "ARCHITECTURE.md says that {} uses {said}, which it does not",
                room.name
            );
        }
    }
}

/// What a crate depends on, with the names of its tests' dependencies, by Cargo.lock.
fn dependencies(of: &str) -> BTreeSet<String> {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let packages: BTreeMap<&str, Vec<&str>> = lock
        .split("[[package]]")
        .filter_map(|package| {
            let quoted = |line: &'static str| package.split_once(line)?.1.split('"').next();
            let listed = package.split_once("dependencies = [").unwrap_or_default().1;
            // A version follows where there are several.
            let names = listed.split('"').skip(1).step_by(2);
            let names = names.filter_map(|name| name.split(' ').next());
            Some((quoted("name = \"")?, names.collect()))
        })
        .collect();
    let mut found = BTreeSet::new();
    let mut left = vec![of];
    while let Some(name) = left.pop() {
        for dependency in &packages[name] {
            if found.insert((*dependency).to_owned()) {
                left.push(dependency);
            }
        }
    }
    found
}

#[test]
fn results_need_no_c_and_no_laboratory() {
    let others = dependencies("lastbyte");
    for name in ["lastbyte-results", "lastbyte-flights", "lastbyte-sizes"] {
        let needed = dependencies(name);
        assert!(needed.contains("lastbyte-link"), "{name} needs {needed:?}");
        for not in ["openssl-sys", "nix", "lastbyte-tls", "netlink-sys"] {
            assert!(others.contains(not), "lastbyte does not need {not}");
            assert!(!needed.contains(not), "{name} needs {not}");
        }
    }
}
