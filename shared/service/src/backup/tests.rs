//! Promise: a copy is put in place whole, and never takes an entry away.

use super::*;
use crate::chain::{Chain, Link};

/// A book with so many entries.
fn book(path: &Path, entries: u32) -> Head {
    let (mut chain, _) = Chain::open(path, None, |_: Link<u32>| {}).unwrap();
    let begun = u32::try_from(chain.head().entries).unwrap();
    for one in begun..entries {
        chain.append(&one).unwrap();
    }
    chain.head().clone()
}

fn backed_up(folder: &Path, to: &Path) -> Copied {
    let mut backup = Backup::begin(to).unwrap();
    backup.copy_book(&folder.join("book"), "book").unwrap();
    backup.copy_folder(folder, &|name| name == "book").unwrap();
    backup.finish("1", "north", "book").unwrap()
}

#[test]
fn a_copy_is_put_in_place_and_never_takes_an_entry_away() {
    let home = tempfile::tempdir().unwrap();
    let [here, copy, lost] = ["here", "copy", "lost"].map(|name| home.path().join(name));
    fs::create_dir_all(here.join("runs/a")).unwrap();
    fs::write(here.join("runs/a/result"), "found").unwrap();
    let path = here.join("book");
    let earlier = book(&path, 2);
    let then = book(&path, 3);
    // A line that is being written is no entry.
    let mut bytes = fs::read(&path).unwrap();
    let whole = bytes.len();
    bytes.extend(b"{\"number\":4");
    fs::write(&path, &bytes).unwrap();
    let copied = backed_up(&here, &copy);
    assert_eq!(
        (copied.files, copied.head.as_deref()),
        (2, Some(&*then.to_string()))
    );
    bytes.truncate(whole);
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        Backup::begin(&copy),
        Err(BackupError::There { .. })
    ));

    let whole = Whole::open(&copy, "north").unwrap();
    whole.goes_on("book", &path, &Known::Nothing).unwrap();
    let later = book(&path, 4);
    let behind = whole.goes_on("book", &path, &Known::Latest);
    assert!(matches!(behind, Err(BackupError::Behind { .. })));
    let gone = lost.join("book");
    let unknown = whole.goes_on("book", &gone, &Known::Nothing);
    assert!(matches!(unknown, Err(BackupError::Unknown { .. })));
    whole.goes_on("book", &gone, &Known::Head(earlier)).unwrap();
    whole.goes_on("book", &gone, &Known::Head(then)).unwrap();
    let older = whole.goes_on("book", &gone, &Known::Head(later));
    assert!(matches!(older, Err(BackupError::Book(_))), "{older:?}");
    whole.goes_on("book", &gone, &Known::Latest).unwrap();
    whole.restore(&lost, &["book"], "book").unwrap();
    assert_eq!(fs::read(lost.join("runs/a/result")).unwrap(), b"found");
    assert_eq!(book(&lost.join("book"), 3).entries, 3);
}

#[test]
fn a_copy_that_was_changed_or_is_of_another_is_none() {
    let home = tempfile::tempdir().unwrap();
    let [here, copy] = ["here", "copy"].map(|name| home.path().join(name));
    fs::create_dir(&here).unwrap();
    book(&here.join("book"), 1);
    for name in ["one", "two"] {
        fs::write(here.join(name), name).unwrap();
    }
    backed_up(&here, &copy);
    let other = Whole::open(&copy, "south").unwrap_err().to_string();
    assert!(
        other.ends_with("a backup of north, wanted one of south"),
        "{other}"
    );
    fs::write(copy.join("one"), "changed").unwrap();
    fs::remove_file(copy.join("two")).unwrap();
    let problems = Whole::open(&copy, "north").unwrap_err().to_string();
    assert!(problems.contains("one: found other bytes"), "{problems}");
    assert!(problems.contains("two: "), "{problems}");
    let manifest = fs::read_to_string(copy.join(MANIFEST)).unwrap();
    let elsewhere = manifest.replace("\"one\"", "\"../one\"");
    fs::write(copy.join(MANIFEST), elsewhere).unwrap();
    let problems = Whole::open(&copy, "north").unwrap_err().to_string();
    assert!(
        problems.contains("../one: found a path that leads elsewhere"),
        "{problems}"
    );
}
