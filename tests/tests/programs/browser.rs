//! Promise: a page is read on a desktop, on a phone and on paper, in a light and a dark scheme. Nothing is scrolled sideways, no
//! text is under 12 pixels, no script runs but the program's own, nothing is loaded from elsewhere, and axe-core finds no violation.
//!
//! Headless Chromium opens the pages and leaves pictures of them under `target/reports/`. Where it, its driver or axe-core (from npm) is
//! absent, the test prints so and checks the rest.

use kindred_tests::chromium::{Chromium, Screen};
use kindred_tests::programs::Home;
use kindred_tests::workspace::root;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

const DESKTOP: Screen = Screen {
    width: 1280,
    is_dark: false,
    is_paper: false,
};
const PHONE: Screen = Screen {
    width: 390,
    ..DESKTOP
};
/// A4 between its margins.
const PAPER: Screen = Screen {
    width: 718,
    is_paper: true,
    ..DESKTOP
};
const SCREENS: [Screen; 5] = [DESKTOP, dark(DESKTOP), PHONE, dark(PHONE), PAPER];
const AXE: &str = "axe-core@4.14.1";
/// Smaller text is hard to read, in pixels.
const TEXT_MIN: u32 = 12;

const fn dark(screen: Screen) -> Screen {
    Screen {
        is_dark: true,
        ..screen
    }
}

/// Looks at the page that is open.
const LOOK: &str = r#"(async () => {
  const size = element => {
    const size = parseFloat(getComputedStyle(element).fontSize);
    const matrix = element.ownerSVGElement && element.getScreenCTM();
    return matrix ? size * Math.hypot(matrix.a, matrix.b) : size;
  };
  const small = () => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
    while (texts.nextNode()) {
      const element = texts.currentNode.parentElement;
      if (texts.currentNode.data.trim() && size(element) < MINIMUM - 0.01)
        found.push(`${texts.currentNode.data.trim()} (${size(element).toFixed(1)} px)`);
    }
    return found;
  };
  const violations = async () => {
    if (!window.axe) return [];
    // A scheme and paper change colours alone.
    const only = matchMedia("(prefers-color-scheme: dark), print").matches ? { runOnly: ["color-contrast"] } : {};
    const found = await axe.run(document, { resultTypes: ["violations"], ...only });
    return found.violations.map(one => `${one.id} at ${one.nodes.map(node => node.target).join(", ")}`);
  };
  const root = document.documentElement;
  return {
    wide: root.scrollWidth - root.clientWidth,
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    paper: matchMedia("print").matches,
    scripts: [...document.scripts].map(one => one.src).filter(one => one !== `${location.origin}/page.js`),
    small: small(),
    violations: await violations(),
  };
})()"#;

/// The script of axe-core, taken from npm once.
fn axe() -> Option<&'static str> {
    static SCRIPT: LazyLock<Option<String>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let ran = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let output = command.args(arguments).current_dir(folder.path()).output();
            output.is_ok_and(|output| output.status.success())
        };
        let packed = ran("npm", &["pack", "--silent", AXE]);
        let archive = format!("{}.tgz", AXE.replace('@', "-"));
        let unpacked = packed && ran("tar", &["-xzf", &archive]);
        let script = folder.path().join("package/axe.min.js");
        unpacked.then(|| fs::read_to_string(script).ok()).flatten()
    });
    if SCRIPT.is_none() {
        println!("skipped: found no {AXE} on npm to check the pages with");
    }
    SCRIPT.as_deref()
}

/// Opens a file on each screen; where there is no Chromium, only says so.
pub(crate) fn check(home: &Home, page: &Path, name: &str) {
    let report = fs::read_to_string(page).unwrap();
    assert!(!report.contains("<script"), "{name}");
    assert!(
        report.contains("@media print"),
        "{name}: no rules for paper"
    );
    if let Some(chromium) = Chromium::start(home) {
        chromium.open(&format!("file://{}", page.display()));
        look(&chromium, name);
    }
}

/// Looks at the page that is open on each screen.
#[track_caller]
pub(crate) fn look(chromium: &Chromium, name: &str) {
    if let Some(script) = axe() {
        chromium.evaluate(&format!("{script};0"));
    }
    let pictures = root().join("target/reports");
    fs::create_dir_all(&pictures).unwrap();
    let script = LOOK.replace("MINIMUM", &TEXT_MIN.to_string());
    for screen in SCREENS {
        chromium.show_on(screen);
        let found = chromium.evaluate(&script);
        let picture = pictures.join(format!("{name}-{screen}.png"));
        fs::write(picture, chromium.picture()).unwrap();
        let place = format!("{name} at {screen}");
        assert_eq!(found["wide"], 0, "{place}: wider than its screen");
        assert_eq!(found["dark"], screen.is_dark, "{place}");
        assert_eq!(found["paper"], screen.is_paper, "{place}");
        let none = json!([]);
        assert_eq!(found["scripts"], none, "{place}: a script of somebody else");
        assert_eq!(found["small"], none, "{place}: text is too small");
        assert_eq!(found["violations"], none, "{place}: axe-core");
    }
    chromium.show_on(DESKTOP);
    let address = chromium.address();
    let own = match address.strip_prefix("http://") {
        Some(rest) => &address[..address.len() - rest.len() + rest.find('/').unwrap() + 1],
        None => &address,
    };
    for asked in chromium.requests() {
        // What it shows before it is asked for a page.
        let is_own = asked.starts_with(own) || asked == "data:,";
        assert!(is_own, "{name}: {asked} was asked for by {own}");
    }
    let complaints = chromium.complaints();
    assert!(complaints.is_empty(), "{name}: {complaints:?}");
}
