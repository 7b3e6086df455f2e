#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;

use super::cache;
use super::digest::{sha256, sha256_of_file};
use super::owner::foreign;
use super::process::{Runner, ToolError};
use super::recipe::{Package, Patch, RECIPES, Recipe, Recipes, Series};
use super::source::{Version, source_version};
use super::{Cache, Cached, Kernel, KernelInfo, Origin, Size, SourceInfo};

const SMALL: Recipe = Recipe {
    series: Series {
        major: 6,
        minor: 12,
    },
    package: Package {
        version: "6.12.1-1",
        sha256: "",
    },
    own_config: "",
    config: "# Why\nCONFIG_A=y\n\nCONFIG_B=n\nCONFIG_C=4\n",
    patches: &[Patch {
        name: "0001-a",
        text: "Why\n\n--- a/a\n+++ b/a\n",
    }],
};
const LATER: Recipe = Recipe {
    series: Series { major: 7, minor: 3 },
    own_config: "# Otherwise\nCONFIG_B=y\nCONFIG_D=y\n",
    ..SMALL
};
const BOTH: Recipes = Recipes {
    first: &SMALL,
    others: &[LATER],
};

#[test]
fn files_of_the_recipe() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("kernel")
        .join("patches");
    let named = |folder: &Path| -> BTreeSet<String> {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap());
        let files = files.filter(|file| file.path().is_file());
        files
            .map(|file| file.file_name().into_string().unwrap())
            .collect()
    };
    let shared = named(&folder);
    for recipe in RECIPES.iter() {
        let names = recipe.patches.iter().map(|patch| patch.name);
        assert!(names.clone().is_sorted());
        let used: BTreeSet<_> = names.map(|name| format!("{name}.patch")).collect();
        let own = named(&folder.join(recipe.series.to_string()));
        // What all series have is in one place alone, and used by all of them.
        assert!(own.is_disjoint(&shared), "{}", recipe.series);
        assert_eq!(&own | &shared, used, "{}", recipe.series);
        for Patch { name, text } in recipe.patches {
            let (reason, diff) = text.split_once("\n--- ").expect(name);
            assert!(reason.trim().lines().count() > 2, "{name} lacks its reason");
            assert!(diff.contains("\n+++ b/"), "{name}");
        }
        let config = recipe.config();
        for line in config.lines().filter(|line| !line.is_empty()) {
            let option = line.starts_with("CONFIG_") && line.contains('=');
            assert!(option || line.starts_with("# "), "{line:?}");
        }
    }
}

/// Kernels that are built already go on to be used, and rows of theirs to be reproduced.
#[test]
fn the_recipe_of_released_kernels() {
    let recipe = RECIPES.first;
    assert_eq!(recipe.series.to_string(), "6.12");
    assert_eq!(
        recipe.digest(),
        "b54958d2be593b99277d55598ddb0205c072f8563604143c81d8a9031d61c994"
    );
}

#[test]
fn options_of_a_series() {
    assert_eq!(SMALL.config(), SMALL.config);
    assert_eq!(
        LATER.config(),
        "# Why\nCONFIG_A=y\n\nCONFIG_C=4\n# Otherwise\nCONFIG_B=y\nCONFIG_D=y\n"
    );
    let missing = LATER.missing_options("CONFIG_A=y\nCONFIG_C=4\n");
    assert_eq!(missing, ["CONFIG_B=y", "CONFIG_D=y"]);
    assert_ne!(LATER.digest(), SMALL.digest());
}

#[test]
fn names_of_series() {
    for (text, series) in [
        ("6.12", "6.12"),
        ("7.3.4", "7.3"),
        ("7.3-rc1", ""),
        ("7", ""),
    ] {
        let read = text.parse::<Series>();
        assert_eq!(read.map_or(String::new(), |it| it.to_string()), series);
    }
    assert_eq!(BOTH.series(), "6.12 and 7.3");
    assert!(
        BOTH.of(Series {
            major: 6,
            minor: 13
        })
        .is_none()
    );
    assert_ne!(BOTH.work_key("a"), BOTH.work_key("b"));
}

#[test]
fn a_digest_is_of_all_of_the_recipe() {
    let recipes = [
        SMALL,
        Recipe {
            config: "CONFIG_A=y\n",
            ..SMALL
        },
        Recipe {
            patches: &[],
            ..SMALL
        },
        // What moves from one file to the next is another recipe too.
        Recipe {
            config: "# Why\nCONFIG_A=y\n\nCONFIG_B=n\nCONFIG_C=4\nWhy\n",
            patches: &[Patch {
                name: "0001-a",
                text: "\n--- a/a\n+++ b/a\n",
            }],
            ..SMALL
        },
    ];
    let digests: BTreeSet<_> = recipes.iter().map(Recipe::digest).collect();
    assert_eq!(digests.len(), recipes.len());
    assert_eq!(SMALL.key("a").len(), 16);
    assert_ne!(SMALL.key("a"), SMALL.key("b"));
}

#[test]
fn options_that_are_missing() {
    for (config, missing) in [
        ("CONFIG_A=y\nCONFIG_C=4\n", vec![]),
        ("CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=4\n", vec![]),
        ("CONFIG_A=y\nCONFIG_B2=y\nCONFIG_C=4\n", vec![]),
        (
            "CONFIG_A=m\nCONFIG_B=y\nCONFIG_C=40\n",
            vec!["CONFIG_A=y", "CONFIG_B=n", "CONFIG_C=4"],
        ),
        ("# CONFIG_A=y\nCONFIG_C=4\n", vec!["CONFIG_A=y"]),
    ] {
        assert_eq!(SMALL.missing_options(config), missing, "{config}");
    }
}

#[test]
fn sizes() {
    for (bytes, text) in [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (5_954_720, "6.0 MB"),
        (59_547_200, "60 MB"),
        (2_500_000_000, "2.5 GB"),
    ] {
        assert_eq!(Size(bytes).to_string(), text);
    }
}

#[test]
fn versions_of_sources() {
    let folder = TempDir::new().unwrap();
    let version = |makefile: &str| {
        fs::write(folder.path().join("Makefile"), makefile).unwrap();
        source_version(folder.path())
    };
    let makefile = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
    let found = version(makefile).unwrap();
    assert_eq!(found.to_string(), "6.12.117");
    let later = Version {
        minor: 13,
        patch: 0,
        ..found
    };
    assert!(later > found);
    assert_eq!(version("VERSION = 6\nPATCHLEVEL = x\nSUBLEVEL = 1\n"), None);
    assert_eq!(version("all:\n"), None);
}

/// Which of two series measures does not depend on which was built last.
#[test]
fn a_cache_keeps_kernels_of_several_series() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::new(folder.path(), BOTH).unwrap();
    let later = keep(&cache, "0", &LATER, "2025-01-01T00:00:00Z", Origin::File);
    // The only one there is.
    assert_eq!(cache.find().unwrap().as_ref(), Some(&later));
    let first = keep(&cache, "1", &SMALL, "2024-01-01T00:00:00Z", Origin::File);
    assert_eq!(cache.find().unwrap().as_ref(), Some(&first));
    assert_eq!(cache.recipe_of_package().series, SMALL.series);
    let contents = [&later, &first].map(|kernel| Cached::Fitting(kernel.clone()));
    assert_eq!(cache.contents().unwrap(), contents);

    let cache = cache.of_series(LATER.series);
    assert_eq!(cache.find().unwrap().as_ref(), Some(&later));
    assert_eq!(cache.recipe_of_package().series, LATER.series);
    fs::write(&later.path, "half").unwrap();
    let told = cache.find().unwrap_err().to_string();
    assert!(told.contains(" is damaged: "), "{told}");
    fs::remove_dir_all(later.path.parent().unwrap()).unwrap();
    assert_eq!(cache.find().unwrap(), None);
    let told = cache.not_built().to_string();
    assert!(
        told.starts_with("no kernel of Linux 7.3, which LASTBYTE_LINUX asks for, is built"),
        "{told}"
    );
}

#[test]
fn a_digest_of_a_file() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a");
    let bytes = vec![7; 1_000_000];
    fs::write(&file, &bytes).unwrap();
    assert_eq!(sha256_of_file(&file).unwrap(), sha256(&bytes));
    // FIPS 180-2, appendix B.1.
    assert_eq!(
        sha256(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

/// Puts a kernel into the cache, as a build does.
fn keep(cache: &Cache, key: &str, recipe: &Recipe, built: &str, origin: Origin) -> Kernel {
    let new = cache.work(key).join("result");
    fs::create_dir_all(&new).unwrap();
    fs::write(cache::program(&new), key).unwrap();
    let info = KernelInfo {
        version: "6.12.1".to_owned(),
        sha256: sha256(key.as_bytes()),
        source: SourceInfo {
            name: "linux.tar".to_owned(),
            sha256: sha256(b""),
            origin,
        },
        recipe_sha256: recipe.digest(),
        config_sha256: sha256(recipe.config().as_bytes()),
        patches: Vec::new(),
        compiler: "cc".to_owned(),
        built: built.to_owned(),
        build_seconds: 1,
    };
    cache::write_info(&new, &info).unwrap();
    let kernel = cache.install(key, &new).unwrap();
    fs::remove_dir(cache.work(key)).unwrap();
    kernel
}

#[test]
fn what_a_cache_keeps() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::new(folder.path(), BOTH).unwrap();
    assert_eq!(cache.find().unwrap(), None);
    assert_eq!(cache.contents().unwrap(), []);
    assert_eq!(cache.remove().unwrap(), Size(0));
    assert!(!cache.folder().exists());

    let other = Recipe {
        patches: &[],
        ..SMALL
    };
    let old = keep(&cache, "0", &SMALL, "2024-01-01T00:00:00Z", Origin::Pinned);
    let new = keep(&cache, "1", &SMALL, "2025-01-01T00:00:00Z", Origin::File);
    let foreign = keep(&cache, "2", &other, "2026-01-01T00:00:00Z", Origin::Pinned);
    let unfinished = cache.work("3");
    fs::create_dir(&unfinished).unwrap();
    fs::create_dir(cache.downloads()).unwrap();
    fs::write(cache.log(), "").unwrap();
    assert_eq!(cache.find().unwrap().as_ref(), Some(&new));
    let pinned = cache.find_where(|info| info.source.origin == Origin::Pinned);
    assert_eq!(pinned.unwrap().as_ref(), Some(&old));
    assert_eq!(
        cache.contents().unwrap(),
        [
            Cached::Other(foreign.clone()),
            Cached::Fitting(new.clone()),
            Cached::Fitting(old.clone()),
            Cached::Unfinished(unfinished),
        ]
    );

    // One that is not as it was built is not used.
    fs::write(&new.path, "half").unwrap();
    assert_eq!(cache.find().unwrap().as_ref(), Some(&old));
    fs::write(old.path.with_file_name("kernel.json"), "{").unwrap();
    let told = cache.find().unwrap_err().to_string();
    assert!(
        told.contains(" is damaged: `lastbyte kernel remove` removes it"),
        "{told}"
    );
    let damaged = |contents: &Cached| matches!(contents, Cached::Damaged(_));
    let contents = cache.contents().unwrap();
    assert_eq!(
        contents.iter().filter(|contents| damaged(contents)).count(),
        2
    );

    assert!(cache.remove().unwrap() > Size(0));
    assert_eq!(cache.contents().unwrap(), []);
    assert!(!cache.log().exists() && !cache.downloads().exists());
}

#[test]
fn a_relative_cache_is_made_absolute() {
    let cache = Cache::new(Path::new("somewhere"), BOTH).unwrap();
    assert!(cache.folder().is_absolute());
    assert!(cache.folder().ends_with("somewhere/kernel"));
}

/// Runs a script as a tool.
fn sh(script: &str) -> (Result<Vec<String>, ToolError>, String) {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    fs::write(&log, "before\n").unwrap();
    let lock = fs::File::open(&log).unwrap();
    let interrupt = AtomicBool::new(false);
    let runner = Runner::new(log.clone(), &lock, &interrupt);
    let lines = runner.lines(runner.tool("/bin/sh").args(["-c", script]));
    (lines, fs::read_to_string(log).unwrap())
}

#[test]
fn tools_and_their_log() {
    let (lines, log) = sh("echo one; echo two >&2; printf three");
    assert_eq!(lines.unwrap(), ["one", "two", "three"]);
    assert!(log.starts_with("before\n$ "), "{log}");
    assert!(log.ends_with("\none\ntwo\nthree"), "{log}");
}

#[test]
fn the_line_that_says_why() {
    for (script, reason) in [
        ("exit 3", "it ended with exit status: 3"),
        ("kill -9 $$", "it ended with signal: 9 (SIGKILL)"),
        ("echo so; echo it is; false", "it is"),
        (
            "echo '  CC      lib/error.o'; echo 'a.c:1: warning: an error'; echo 'a.c:2: error: no'
             echo 'a.c:3: error: nor'; echo 'make: *** [a.o] Error 1'; false",
            "a.c:2: error: no",
        ),
        (
            "echo 'xz: (stdin): Unexpected end of input'; echo 'tar: Error is not recoverable'; false",
            "xz: (stdin): Unexpected end of input",
        ),
        ("printf 'bad \\033[1mthing'; false", "bad \\u{1b}[1mthing"),
    ] {
        match sh(script).0 {
            Err(ToolError::Failed(said)) => assert_eq!(said, reason),
            other => panic!("{script}: {other:?}"),
        }
    }
    let full = sh("head -c 1 /dev/zero > /dev/full");
    assert!(matches!(full.0, Err(ToolError::DiskFull)), "{full:?}");
}

#[test]
fn tools_do_not_get_the_environment_of_others() {
    // Cargo sets this one for tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let (lines, _) = sh("echo ${CARGO_MANIFEST_DIR-none} $LC_ALL");
    assert_eq!(lines.unwrap(), ["none C"]);
}

/// Whoever can write into one kernel's folder has it run as whoever measures.
#[test]
fn what_a_kernel_is_must_be_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let caches = folder.path().to_owned();
    let cache = Cache::new(&caches, RECIPES).unwrap();
    let kernel = caches.join("kernel").join("1");
    fs::create_dir_all(&kernel).unwrap();
    let parts = [
        (caches.clone(), 0o755),
        (caches.join("kernel"), 0o755),
        (kernel.clone(), 0o755),
        (kernel.join("linux"), 0o755),
        (kernel.join("kernel.json"), 0o644),
        (kernel.join("built-here"), 0o644),
    ];
    let set = |path: &Path, mode| {
        if !path.exists() {
            fs::write(path, "").unwrap();
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (path, mode) in &parts {
        set(path, *mode);
    }
    let problem = || cache.parts(&caches).iter().find_map(|part| foreign(part));
    assert_eq!(problem(), None);
    for (path, mode) in &parts {
        set(path, mode | 0o002);
        let problem = problem().unwrap();
        assert!(problem.contains(path.to_str().unwrap()), "{problem}");
        set(path, *mode);
    }
}

/// As where the umask is 000, and the right to change files is given away to all.
#[test]
fn a_kernel_that_is_put_in_place_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path(), RECIPES).unwrap();
    let new = cache.arrivals();
    fs::create_dir_all(&new).unwrap();
    for file in ["linux", "kernel.json", "built-here"] {
        fs::write(new.join(file), "").unwrap();
        fs::set_permissions(new.join(file), fs::Permissions::from_mode(0o666)).unwrap();
    }
    fs::set_permissions(new.join("linux"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o777)).unwrap();
    // It is none that can be read back.
    cache.install("1", &new).unwrap_err();
    assert_eq!(
        cache
            .parts(folder.path())
            .iter()
            .find_map(|part| foreign(part)),
        None
    );
    let mode = |file| {
        let found = cache.folder().join("1").join(file).metadata();
        found.unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("linux"), mode("kernel.json")), (0o755, 0o644));
}

/// What is taken would not be used.
#[test]
fn nothing_is_put_into_a_cache_that_others_can_change() {
    let folder = tempfile::tempdir().unwrap();
    let caches = folder.path().join("caches");
    fs::create_dir(&caches).unwrap();
    fs::set_permissions(&caches, fs::Permissions::from_mode(0o777)).unwrap();
    let cache = Cache::new(&caches, RECIPES).unwrap();
    let refused = cache.try_lock().unwrap_err().to_string();
    assert!(refused.contains("can be changed by others"), "{refused}");
    assert!(!cache.folder().exists());
    fs::set_permissions(&caches, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(cache.try_lock().unwrap().is_some());
}
