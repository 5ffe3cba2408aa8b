//! Promise: a page is read on a desktop, on a phone and on paper, in a light and a dark scheme. Nothing is scrolled sideways, no
//! text is under 12 pixels, no script runs, nothing is loaded from elsewhere, and axe-core finds no violation.
//!
//! Headless Chromium (Debian's package) opens the pages and leaves pictures of them under `target/reports/`. Where it or
//! axe-core (from npm) is absent, the test prints so and checks the rest.

use kindred_tests::programs::Home;
use kindred_tests::workspace::root;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const WIDTHS: [u32; 2] = [1280, 390];
/// Chromium's numbers of the two schemes.
const SCHEMES: [(&str, u32); 2] = [("dark", 0), ("light", 1)];
const AXE: &str = "axe-core@4.14.1";
/// Smaller text is hard to read, in pixels.
const TEXT_MIN: u32 = 12;

/// Opens a page in a frame of each width, as a screen and as paper show it, and writes a line of what was found for each.
const FRAME: &str = r#"<!doctype html><body style="margin:0"><pre id="found"></pre><script>
const size = (page, element) => {
  const size = parseFloat(page.defaultView.getComputedStyle(element).fontSize);
  const matrix = element.ownerSVGElement && element.getScreenCTM();
  return matrix ? size * Math.hypot(matrix.a, matrix.b) : size;
};
const small = page => {
  const texts = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (texts.currentNode.data.trim() && size(page, element) < MINIMUM - 0.01)
      found.push(`${texts.currentNode.data.trim()} (${size(page, element).toFixed(1)} px)`);
  }
  return found;
};
const violations = async frame => {
  if (!AXE) return [];
  const script = frame.contentDocument.createElement("script");
  script.src = AXE;
  const loaded = new Promise(done => script.addEventListener("load", done));
  frame.contentDocument.head.append(script);
  await loaded;
  const found = await frame.contentWindow.axe.run();
  return found.violations.map(one => `${one.id} at ${one.nodes.map(node => node.target).join(", ")}`);
};
const look = async (page, width) => {
  const frame = document.createElement("iframe");
  frame.style = `border:0;height:8000px;width:${width}px`;
  const loaded = new Promise(done => frame.addEventListener("load", done));
  frame.src = page;
  document.body.append(frame);
  await loaded;
  const root = frame.contentDocument.documentElement;
  const scripts = frame.contentDocument.scripts.length;
  const requests = frame.contentWindow.performance.getEntriesByType("resource").length;
  const found = {
    page, width, scripts, requests,
    wide: root.scrollWidth - root.clientWidth,
    dark: frame.contentWindow.matchMedia("(prefers-color-scheme: dark)").matches,
    small: small(frame.contentDocument),
    violations: await violations(frame),
  };
  frame.remove();
  return found;
};
(async () => {
  const all = [];
  for (const page of ["PAGE", "print.html"])
    for (const width of WIDTHS) all.push(await look(page, width));
  document.getElementById("found").textContent =
    JSON.stringify(all).replace(/[<>&]/g, "?");
})();
</script>"#;

fn chromium() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&paths)
        .flat_map(|folder| ["chromium", "chromium-browser"].map(|name| folder.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: found no chromium to open the pages with");
    }
    found
}

/// The script of axe-core, taken from npm once.
fn axe() -> Option<&'static Path> {
    static SCRIPT: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        let ran = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let output = command.args(arguments).current_dir(&folder).output();
            output.is_ok_and(|output| output.status.success())
        };
        let script = folder.join("package/axe.min.js");
        let packed = ran("npm", &["pack", "--silent", AXE]);
        let archive = format!("{}.tgz", AXE.replace('@', "-"));
        (packed && ran("tar", &["-xzf", &archive]) && script.is_file()).then_some(script)
    });
    if SCRIPT.is_none() {
        println!("skipped: found no {AXE} on npm to check the pages with");
    }
    SCRIPT.as_deref()
}

fn browse(chromium: &Path, home: &Home, scheme: u32, arguments: &[String]) -> String {
    let profile = format!("--user-data-dir={}", home.join("profile").display());
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--allow-file-access-from-files",
            "--virtual-time-budget=20000",
            &profile,
        ])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Opens a page in each scheme; where there is no Chromium, only says so.
pub(crate) fn check(home: &Home, page: &Path, name: &str) {
    let Some(chromium) = chromium() else {
        return;
    };
    let folder = page.parent().unwrap();
    let report = std::fs::read_to_string(page).unwrap();
    assert!(!report.contains("<script"), "{name}");
    let paper = report.replace("@media print", "@media all");
    assert_ne!(report, paper, "{name}: no rules for paper");
    std::fs::write(folder.join("print.html"), paper).unwrap();
    let file_name = page.file_name().unwrap().to_string_lossy();
    let script = axe().map(|script| format!("file://{}", script.display()));
    let frame = FRAME
        .replace("MINIMUM", &TEXT_MIN.to_string())
        .replace("WIDTHS", &format!("{WIDTHS:?}"))
        .replace("PAGE", &file_name)
        .replace("AXE", &serde_json::to_string(&script).unwrap());
    let opened = folder.join("frame.html");
    std::fs::write(&opened, frame).unwrap();
    let pictures = root().join("target/reports");
    std::fs::create_dir_all(&pictures).unwrap();
    for (scheme, number) in SCHEMES {
        let url = format!("file://{}", opened.display());
        let written = browse(&chromium, home, number, &["--dump-dom".to_owned(), url]);
        for found in found(&written, name) {
            let place = format!("{name}, {} at {}, {scheme}", found["page"], found["width"]);
            assert_eq!(found["wide"], 0, "{place}: wider than its frame");
            assert_eq!(found["dark"], scheme == "dark", "{place}");
            assert_eq!(found["scripts"], 0, "{place}");
            assert_eq!(found["requests"], 0, "{place}");
            let none = serde_json::json!([]);
            assert_eq!(found["small"], none, "{place}: text is too small");
            assert_eq!(found["violations"], none, "{place}: axe-core");
        }
        for width in WIDTHS {
            let picture = pictures.join(format!("{name}-{width}-{scheme}.png"));
            let report = format!("file://{}", page.display());
            let arguments = [
                format!("--screenshot={}", picture.display()),
                format!("--window-size={width},2400"),
                report,
            ];
            browse(&chromium, home, number, &arguments);
            assert!(picture.is_file(), "{}", picture.display());
        }
    }
    for made in ["frame.html", "print.html"] {
        std::fs::remove_file(folder.join(made)).unwrap();
    }
}

/// What the frame wrote: an entry for each page and width.
fn found(page: &str, name: &str) -> Vec<serde_json::Value> {
    let written = page.split("<pre id=\"found\">").nth(1);
    let written = written.and_then(|rest| rest.split("</pre>").next());
    let found: Vec<serde_json::Value> = serde_json::from_str(written.unwrap_or_default())
        .unwrap_or_else(|_| panic!("{name}: the page did not load: {page}"));
    assert_eq!(found.len(), 2 * WIDTHS.len(), "{name}");
    found
}
