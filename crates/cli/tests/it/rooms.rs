//! What ARCHITECTURE.md says of rooms is what they import, and nothing flows back up.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use syn::buffer::{Cursor, TokenBuffer};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Ident, ImplItem, Item, ItemMod, ItemUse, Macro, MetaList, TraitItem, UseTree,
};

use crate::common::repository::root;

/// A room, in the words of ARCHITECTURE.md's table.
struct Room {
    name: String,
    /// What it says that it uses.
    uses: BTreeSet<String>,
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

/// The modules of other crates that `lastbyte` has as its own, besides the crates themselves.
const REEXPORTED: [(&str, &[&str]); 2] = [
    ("explain", &["geography", "plan", "search"]),
    ("results", &["reduce", "validate"]),
];

/// What a room's code names of other rooms, each with a file that does.
fn imports(room: &Room, rooms: &[Room]) -> BTreeMap<String, PathBuf> {
    let (of, own) = room.name.split_once("::").unwrap_or((&room.name, ""));
    let others = rooms.iter().filter(|other| other.name != room.name);
    let others: Vec<(String, &str)> = others
        .map(|other| (other.name.replace('-', "_"), short(&other.name)))
        .collect();
    let mut found = BTreeMap::new();
    for (place, module) in modules(&source(of)) {
        if !own.is_empty() && place.first().is_none_or(|first| first != own) {
            continue;
        }
        for path in &module.paths {
            let names = |(code, name): &&(String, &str)| match path.as_slice() {
                [first, inside, ..] if first == "crate" && !own.is_empty() => {
                    let all = REEXPORTED.iter().find(|(of, _)| of == name);
                    inside == name || all.is_some_and(|(_, all)| all.contains(&inside.as_str()))
                }
                [first, ..] => first == code,
                [] => false,
            };
            if let Some((_, name)) = others.iter().find(names) {
                found.insert((*name).to_owned(), module.file.clone());
            }
        }
    }
    found
}

#[test]
fn rooms_use_what_architecture_says() {
    let rooms = rooms();
    assert_eq!(rooms.len(), 24);
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let has = |room: &Room| source(&room.name).starts_with(&folder);
        let name = folder.display();
        assert!(
            rooms.iter().any(has),
            "ARCHITECTURE.md has no room in {name}"
        );
    }
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

/// The words of code that a text has.
fn code(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Who adds something, or follows a connection, finds the file, and in it the list that has a line of each.
#[test]
fn places_that_architecture_names_are_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let is_path = |word: &&str| word.contains("/src/");
    let place = |word: &str| root().join("crates").join(word.trim_end_matches("/*.rs"));
    let files: Vec<&str> = code(&text).into_iter().filter(is_path).collect();
    for file in &files {
        assert!(place(file).exists(), "there is no {file}");
    }
    let (_, section) = text.split_once("\n## To add\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| "));
    let mut lists = 0;
    for row in rows.skip(1) {
        let cells: Vec<&str> = row.split('|').collect();
        let [_, what, file, lines, _] = cells.as_slice() else {
            panic!("{row}");
        };
        let own: Vec<&str> = code(file).into_iter().filter(is_path).collect();
        for line in lines.split(", ") {
            let words = code(line);
            let Some((list, of)) = words.split_first() else {
                continue;
            };
            let list = list.trim_end_matches('!');
            let forms = [
                format!(" {list}: "),
                format!("macro_rules! {list} "),
                format!("fn {list}("),
            ];
            for path in if of.is_empty() { &own } else { of } {
                let text = fs::read_to_string(place(path)).unwrap();
                let has = forms.iter().any(|form| text.contains(form));
                assert!(has, "{what}: {path} has no {list}");
            }
            lists += 1;
        }
    }
    assert!(
        files.len() > 50 && lists > 12,
        "{} files, {lists} lists",
        files.len()
    );
}

/// What a crate depends on with its usual features, its tests' dependencies included.
fn dependencies(of: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "tree",
        "--locked",
        "--offline",
        "--prefix=none",
        "--edges=all",
    ]);
    let tree = cargo
        .args(["--package", of])
        .current_dir(root())
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{problem}");
    let tree = String::from_utf8(tree.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.skip(1).map(str::to_owned).collect()
}

#[test]
fn results_need_no_c_and_no_laboratory() {
    let others = dependencies("lastbyte");
    for (name, with) in [
        ("lastbyte-report", "lastbyte-link"),
        ("lastbyte-explain", "lastbyte-link"),
        ("lastbyte-results", "lastbyte-link"),
        ("lastbyte-study", "lastbyte-link"),
        ("lastbyte-exchange", "lastbyte-link"),
        ("lastbyte-flights", "lastbyte-exchange"),
        ("lastbyte-sizes", "lastbyte-link"),
        ("lastbyte-zeek", "lastbyte-files"),
    ] {
        let needed = dependencies(name);
        assert!(needed.contains(with), "{name} needs {needed:?}");
        for not in ["openssl-sys", "nix", "lastbyte-tls", "netlink-sys"] {
            assert!(others.contains(not), "lastbyte does not need {not}");
            assert!(!needed.contains(not), "{name} needs {not}");
        }
    }
}

/// Modules as paths such as `study/arm`, and what is in the file of each.
type Modules = BTreeMap<Vec<String>, Module>;

/// A file of code, without what is compiled for tests alone.
struct Module {
    file: PathBuf,
    /// All paths that `use` declarations, other code and macros name, each from its first segment.
    paths: Vec<Vec<String>>,
    /// The modules that have files of their own.
    children: Vec<String>,
    /// What it calls functions, types, traits, modules and constants.
    names: Vec<String>,
}

/// The modules of a crate, as its code declares them.
fn modules(source: &Path) -> Modules {
    let mut found = BTreeMap::new();
    let roots = ["lib.rs", "main.rs"].map(|root| source.join(root));
    let roots = roots.into_iter().filter(|root| root.exists());
    let mut left: Vec<_> = roots.map(|root| (root, Vec::new())).collect();
    while let Some((file, place)) = left.pop() {
        let mut module = Module {
            file,
            paths: Vec::new(),
            children: Vec::new(),
            names: Vec::new(),
        };
        let text = fs::read_to_string(&module.file).unwrap();
        module.visit_file(&syn::parse_file(&text).unwrap());
        for child in &module.children {
            let place: Vec<String> = place.iter().chain([child]).cloned().collect();
            let path: PathBuf = [source]
                .into_iter()
                .chain(place.iter().map(Path::new))
                .collect();
            let files = [path.with_extension("rs"), path.join("mod.rs")];
            left.push((files.into_iter().find(|file| file.exists()).unwrap(), place));
        }
        found.insert(place, module);
    }
    found
}

impl Visit<'_> for Module {
    fn visit_item(&mut self, item: &Item) {
        let (attributes, name) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Impl(item) => (&item.attrs, None),
            Item::Mod(item) => (&item.attrs, Some(&item.ident)),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Use(item) => (&item.attrs, None),
            _ => (&Vec::new(), None),
        };
        let is_test = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<Ident>()
                    .is_ok_and(|option| option == "test")
        };
        if !attributes.iter().any(is_test) {
            self.names.extend(name.map(Ident::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &ImplItem) {
        let name = match item {
            ImplItem::Const(item) => Some(&item.ident),
            ImplItem::Fn(item) => Some(&item.sig.ident),
            ImplItem::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.names.extend(name.map(Ident::to_string));
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &TraitItem) {
        let name = match item {
            TraitItem::Const(item) => Some(&item.ident),
            TraitItem::Fn(item) => Some(&item.sig.ident),
            TraitItem::Type(item) => Some(&item.ident),
            _ => None,
        };
        self.names.extend(name.map(Ident::to_string));
        visit::visit_trait_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &ItemMod) {
        if item.content.is_none() {
            self.children.push(item.ident.to_string());
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        self.expand(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        self.paths.push(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect(),
        );
        visit::visit_path(self, path);
    }

    fn visit_meta_list(&mut self, attribute: &MetaList) {
        self.scan(TokenBuffer::new2(attribute.tokens.clone()).begin());
    }

    /// What it is given is code as a rule, whatever it makes of it.
    fn visit_macro(&mut self, called: &Macro) {
        self.visit_path(&called.path);
        self.scan(TokenBuffer::new2(called.tokens.clone()).begin());
    }
}

impl Module {
    /// `a::{b, c::d}` are `a::b` and `a::c::d`.
    fn expand(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.expand(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.expand(tree, before)),
            UseTree::Name(name) => self.paths.push(with(&name.ident)),
            UseTree::Rename(renamed) => self.paths.push(with(&renamed.ident)),
            UseTree::Glob(_) => self.paths.push(before.to_vec()),
        }
    }

    /// The paths among tokens: names with two colons before each but the first.
    fn scan(&mut self, mut rest: Cursor<'_>) {
        let mut colons = 0;
        while let Some((_, after)) = rest.token_tree() {
            if let Some((name, _)) = rest.ident() {
                match self.paths.last_mut().filter(|_| colons == 2) {
                    Some(path) => path.push(name.to_string()),
                    None => self.paths.push(vec![name.to_string()]),
                }
            } else if let Some((inside, ..)) = rest.any_group() {
                self.scan(inside);
            }
            let is_colon = rest.punct().is_some_and(|(mark, _)| mark.as_char() == ':');
            colons = if is_colon { colons + 1 } else { 0 };
            rest = after;
        }
    }
}

/// The module that a path in `module` names, or the one that has what it names.
fn resolve(path: &[String], module: &[String], modules: &Modules) -> Vec<String> {
    let mut place: Vec<String> = Vec::new();
    let mut segments = path.iter().peekable();
    if path[0] == "super" {
        place = module.to_vec();
        while segments.next_if(|segment| *segment == "super").is_some() {
            place.pop();
        }
    } else {
        segments.next();
    }
    for segment in segments {
        place.push(segment.clone());
        if !modules.contains_key(&place) {
            place.pop();
            break;
        }
    }
    place
}

/// Which modules each module's code names.
fn needs(modules: &Modules) -> BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> {
    let all = modules.iter().map(|(place, module)| {
        let others = module
            .paths
            .iter()
            .filter(|path| matches!(path[0].as_str(), "crate" | "super"));
        let others = others.map(|path| resolve(path, place, modules));
        (place, others.collect())
    });
    all.collect()
}

/// A circle that leads from `start` back to it, if there is one.
fn circle<'a>(
    start: &'a str,
    edges: &BTreeMap<&'a str, BTreeMap<&'a str, String>>,
) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut left = vec![start];
    while let Some(place) = left.pop() {
        for other in edges.get(place).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(other) {
                before.insert(other, place);
                left.push(other);
            }
        }
    }
    let mut way = vec![start];
    loop {
        let place = before.get(way.last()?)?;
        way.push(place);
        if *place == start {
            way.reverse();
            return Some(way);
        }
    }
}

/// Modules that need each other can't be read one after the other. Inside each module, its children are asked, each with all
/// that is inside it.
#[test]
fn no_modules_need_each_other() {
    let mut edges_of_all = 0;
    let mut circles = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let source = entry.unwrap().path().join("src");
        let modules = modules(&source);
        let needs = needs(&modules);
        let parents = modules
            .keys()
            .flat_map(|module| (0..module.len()).map(|end| &module[..end]));
        for parent in parents.collect::<BTreeSet<_>>() {
            let child = |module: &'_ [String]| module.starts_with(parent).then_some(parent.len());
            // Of each child, whom it needs, and the file that says so.
            let mut edges: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
            for (module, others) in &needs {
                for other in others {
                    let ends = child(module).and_then(|at| Some((module.get(at)?, other.get(at)?)));
                    let ends = ends.filter(|_| child(other).is_some());
                    if let Some((one, other)) = ends.filter(|(one, other)| one != other) {
                        let file = module.join("/");
                        edges.entry(one).or_default().insert(other, file);
                        edges_of_all += 1;
                    }
                }
            }
            if let Some(circle) = edges.keys().find_map(|start| circle(start, &edges)) {
                let steps = circle.windows(2).map(|step| {
                    format!(
                        "{} (in {}) -> {}",
                        step[0], edges[step[0]][step[1]], step[1]
                    )
                });
                let steps: Vec<String> = steps.collect();
                circles.push(format!("{}: {}", source.display(), steps.join(", ")));
            }
        }
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
    assert!(edges_of_all > 300, "{edges_of_all} imports were seen");
}

/// Words that say how something came to be there, and not what it is.
const VAGUE: [&str; 5] = ["told", "known", "said", "felt", "asked"];

/// Names with such a word that have to be: there is none.
const ALLOWED: [&str; 0] = [];

/// The words of `a_name`, `A_NAME` or `AName`, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && before.is_lowercase() {
            words.push(String::new());
        }
        let word = words.last_mut().unwrap();
        word.extend(c.to_lowercase().filter(|c| *c != '_'));
        before = c;
    }
    words
}

#[test]
fn names_say_what_something_is() {
    assert_eq!(words("is_told"), ["is", "told"]);
    assert_eq!(words("MOST_TOLD"), ["most", "told"]);
    assert_eq!(words("WhatIsTold"), ["what", "is", "told"]);
    let mut seen = 0;
    let mut vague = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        for module in modules(&entry.unwrap().path().join("src")).values() {
            seen += module.names.len();
            let names = module.names.iter().filter(|name| {
                let is_vague = |word: &String| VAGUE.contains(&word.as_str());
                words(name).iter().any(is_vague) && !ALLOWED.contains(&name.as_str())
            });
            vague.extend(names.map(|name| format!("{name} in {}", module.file.display())));
        }
    }
    vague.sort();
    assert!(vague.is_empty(), "{}", vague.join("\n"));
    assert!(seen > 5_000, "{seen} names were seen");
}
