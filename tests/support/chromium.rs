//! A browser that is used as people use one: Debian's Chromium, by its driver and the protocol WebDriver. Whatever is done in it is done
//! by keys, and each stop of the focus must be seen and have a name.

use crate::programs::{Home, PATIENCE, Process, until};
use crate::visitor::raw;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Drivers that were started.
static STARTED: AtomicU32 = AtomicU32::new(0);
/// Drivers that are started for one browser at most.
const STARTS_MAX: usize = 5;
/// Stops of the focus, at most, until a page has been walked through.
const STOPS_MAX: usize = 150;
/// Whether a page is there.
const WHOLE: &str = "document.body !== null && document.readyState === 'complete'";
/// Where the focus is, and what is wrong with how it shows.
const FOCUS: &str = r#"(() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  if (at === document.body) return "nowhere";
  if (!at.matches(":focus-visible") || style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return "without an outline";
  if (box.bottom <= 0 || box.right <= 0 || box.top >= innerHeight || box.left >= innerWidth) return "out of sight";
  return "";
})()"#;

/// A key that is no letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// To the next stop.
    Tab,
    /// Follows a link, or sends a form.
    Enter,
    /// Presses a button, opens a summary, or ticks a box.
    Space,
    /// The next one of a list.
    Down,
    /// Takes a letter away.
    Backspace,
}

impl Key {
    fn code(self) -> char {
        match self {
            Self::Tab => '\u{e004}',
            Self::Enter => '\u{e007}',
            Self::Space => ' ',
            Self::Down => '\u{e015}',
            Self::Backspace => '\u{e003}',
        }
    }
}

const SHIFT: char = '\u{e008}';
const CONTROL: char = '\u{e009}';
const END: char = '\u{e010}';

/// What a page is shown on.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// In pixels.
    pub width: u32,
    /// Whether it asks for dark colours.
    pub is_dark: bool,
    /// Whether it is paper.
    pub is_paper: bool,
}

impl fmt::Display for Screen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.is_paper, self.is_dark) {
            (true, _) => "print",
            (false, true) => "dark",
            (false, false) => "light",
        };
        write!(formatter, "{}-{kind}", self.width)
    }
}

/// A browser. It ends when the test lets go of it.
pub struct Chromium {
    /// It takes the browser along when it ends.
    _driver: Process,
    port: u16,
    session: String,
}

/// Starts a driver; gives its port. One that finds the port of its choice taken ends, and the next chooses another.
fn drive(home: &Home, program: &Path) -> (Process, u16) {
    for _ in 0..STARTS_MAX {
        // A home may have had others, whose logs have other ports.
        let name = format!("chromedriver-{}", STARTED.fetch_add(1, Ordering::Relaxed));
        let mut driver = home.start(&name, program, &["--port=0"]);
        let port = until("the port of chromedriver", PATIENCE, || {
            match driver.log().split_once("started successfully on port ") {
                Some((_, said)) => said.split_once('.')?.0.parse().ok().map(Some),
                None => driver.ended().map(|_| None),
            }
        });
        if let Some(port) = port {
            return (driver, port);
        }
        let log = driver.log();
        assert!(
            log.contains("Address already in use"),
            "chromedriver ended:\n{log}"
        );
    }
    panic!("chromedriver found no port in {STARTS_MAX} starts");
}

impl Chromium {
    /// Starts one; where there is no Chromium or no driver, says so.
    pub fn start(home: &Home) -> Option<Self> {
        let browser = found(&["chromium", "chromium-browser"])?;
        let driver = found(&["chromedriver"])?;
        let (driver, port) = drive(home, &driver);
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            // It ends with its driver, however that ends.
            "--remote-debugging-pipe",
        ];
        let wanted = json!({
            "goog:chromeOptions": {"binary": browser, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": 30_000, "pageLoad": 30_000},
        });
        let wanted = json!({"capabilities": {"alwaysMatch": wanted}});
        let begun = ask(port, "POST", "/session", &wanted);
        let begun = begun.unwrap_or_else(|error| panic!("no browser: {error}"));
        Some(Self {
            _driver: driver,
            port,
            session: text(&begun["sessionId"]),
        })
    }

    /// Asks the driver of this browser.
    fn ask(&self, method: &str, what: &str, with: &Value) -> Result<Value, String> {
        let path = format!("/session/{}/{what}", self.session);
        ask(self.port, method, &path, with)
    }

    #[track_caller]
    fn post(&self, what: &str, with: &Value) -> Value {
        let said = self.ask("POST", what, with);
        said.unwrap_or_else(|error| panic!("{what}: {error}"))
    }

    /// Asks Chromium itself.
    #[track_caller]
    pub fn devtools(&self, command: &str, with: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": command, "params": with}))
    }

    /// Opens an address, and waits until its page is whole: the driver may be done while another takes its place.
    #[track_caller]
    pub fn open(&self, address: &str) {
        self.post("url", &json!({"url": address}));
        self.wait_for(WHOLE);
    }

    /// The address that is open.
    #[track_caller]
    pub fn address(&self) -> String {
        text(&self.evaluate("location.href"))
    }

    /// What an expression of a script is on the page, whatever the page's policy of scripts.
    #[track_caller]
    pub fn evaluate(&self, expression: &str) -> Value {
        self.evaluated(expression)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same; none while pages change.
    fn evaluated(&self, expression: &str) -> Result<Value, String> {
        let with = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let command = json!({"cmd": "Runtime.evaluate", "params": with});
        let mut said = self.ask("POST", "goog/cdp/execute", &command)?;
        match said.get("exceptionDetails") {
            Some(thrown) => Err(format!("the script failed: {thrown}")),
            None => Ok(said["result"]["value"].take()),
        }
    }

    /// Waits until an expression of a script holds on the page.
    #[track_caller]
    pub fn wait_for(&self, expression: &str) {
        let begun = Instant::now();
        until(expression, 2 * PATIENCE, || {
            let holds = self.evaluated(expression) == Ok(Value::Bool(true));
            let is_late = begun.elapsed() > PATIENCE;
            assert!(holds || !is_late, "not {expression}:\n{}", self.words());
            holds.then_some(())
        });
    }

    /// The words of the page, as soon as it has a body.
    #[track_caller]
    pub fn words(&self) -> String {
        let words = || self.evaluated("document.body.innerText").ok();
        text(&until("the words of a page", PATIENCE, words))
    }

    /// The page says all of this.
    #[track_caller]
    pub fn must_say(&self, wanted: &[&str]) {
        let words = self.words();
        for text in wanted {
            assert!(words.contains(text), "wanted {text:?} in:\n{words}");
        }
    }

    /// Presses a key.
    #[track_caller]
    pub fn press(&self, key: Key) {
        self.strokes(&stroke(key.code()));
    }

    /// Presses a key that leads to another page, and waits until that is whole.
    #[track_caller]
    pub fn go(&self, key: Key) {
        self.leave(|| self.press(key));
    }

    /// Does what leads to another page, and waits until that is whole.
    #[track_caller]
    pub fn leave(&self, by: impl FnOnce()) {
        self.evaluate("window.isBefore = true");
        by();
        self.wait_for(&format!("!window.isBefore && {WHOLE}"));
    }

    /// Writes letters: into a field, or to choose by their beginning from a list.
    #[track_caller]
    pub fn write(&self, text: &str) {
        self.strokes(&text.chars().flat_map(stroke).collect::<Vec<_>>());
    }

    /// Goes to the end of the field with the focus.
    #[track_caller]
    pub fn to_the_end(&self) {
        self.strokes(&held(CONTROL, END));
    }

    /// Writes over what the field with the focus holds.
    #[track_caller]
    pub fn write_over(&self, text: &str) {
        self.strokes(&held(CONTROL, 'a'));
        self.press(Key::Backspace);
        self.write(text);
    }

    /// Goes on to the next stop of the focus that is called so; gives what it is.
    #[track_caller]
    pub fn tab_to(&self, name: &str) -> String {
        self.walk(name, &stroke(Key::Tab.code()))
    }

    /// Goes back to it.
    #[track_caller]
    pub fn tab_back_to(&self, name: &str) -> String {
        self.walk(name, &held(SHIFT, Key::Tab.code()))
    }

    #[track_caller]
    fn walk(&self, wanted: &str, step: &[Value]) -> String {
        let mut stops = Vec::new();
        for _ in 0..STOPS_MAX {
            self.strokes(step);
            let wrong = text(&self.evaluate(FOCUS));
            // After the last stop comes the browser's own, then the first.
            if wrong == "nowhere" {
                stops.push(wrong);
                continue;
            }
            let (name, role) = self.focus();
            assert_eq!(wrong, "", "the focus at {role} {name:?}, after {stops:?}");
            assert!(!name.is_empty(), "a {role} without a name, after {stops:?}");
            if name.contains(wanted) {
                return role;
            }
            stops.push(name);
        }
        panic!("no stop is called {wanted:?}: {stops:?}");
    }

    /// What has the focus: its name and what it is, as a screen reader says them.
    #[track_caller]
    pub fn focus(&self) -> (String, String) {
        let at = self.ask("GET", "element/active", &Value::Null);
        let at = at.unwrap_or_else(|error| panic!("no focus: {error}"));
        let at = at.as_object().and_then(|at| at.values().next());
        let at = text(at.unwrap_or(&Value::Null));
        let said = |what: &str| {
            let said = self.ask("GET", &format!("element/{at}/computed{what}"), &Value::Null);
            text(&said.unwrap_or_else(|error| panic!("no {what}: {error}")))
        };
        (said("label"), said("role"))
    }

    #[track_caller]
    fn strokes(&self, strokes: &[Value]) {
        let keys = json!({"type": "key", "id": "keys", "actions": strokes});
        self.post("actions", &json!({"actions": [keys]}));
    }

    /// Shows the page on another screen.
    #[track_caller]
    pub fn show_on(&self, screen: Screen) {
        let Screen {
            width,
            is_dark,
            is_paper,
        } = screen;
        let metrics =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = if is_dark { "dark" } else { "light" };
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        let media = if is_paper { "print" } else { "screen" };
        let media = json!({"media": media, "features": [scheme]});
        self.devtools("Emulation.setEmulatedMedia", &media);
    }

    /// A picture of the whole page.
    #[track_caller]
    pub fn picture(&self) -> Vec<u8> {
        let with =
            json!({"format": "png", "captureBeyondViewport": true, "optimizeForSpeed": true});
        let drawn = self.devtools("Page.captureScreenshot", &with);
        let drawn = STANDARD.decode(text(&drawn["data"]));
        drawn.expect("a picture in base64")
    }

    /// Every address that pages asked for since this was last asked.
    #[track_caller]
    pub fn requests(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "performance"}));
        let entries = entries.as_array().into_iter().flatten();
        let events = entries.filter_map(|entry| {
            let event: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let event = &event["message"];
            let is_request = event["method"] == "Network.requestWillBeSent";
            is_request.then(|| text(&event["params"]["request"]["url"]))
        });
        events.collect()
    }

    /// What the browser complained of since this was last asked: scripts that failed, and what the page's policy refused. That a
    /// program answered with another status than 200 is none of it.
    #[track_caller]
    pub fn complaints(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "browser"}));
        let entries = entries.as_array().into_iter().flatten();
        let own = entries.filter(|entry| entry["source"] != "network");
        own.map(|entry| text(&entry["message"])).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let path = format!("/session/{}", self.session);
        let _ = ask(self.port, "DELETE", &path, &Value::Null);
    }
}

/// A key, down and up.
fn stroke(key: char) -> Vec<Value> {
    vec![turn("keyDown", key), turn("keyUp", key)]
}

/// A key while another is held.
fn held(holds: char, key: char) -> Vec<Value> {
    let mut all = vec![turn("keyDown", holds)];
    all.extend(stroke(key));
    all.push(turn("keyUp", holds));
    all
}

fn turn(way: &str, key: char) -> Value {
    json!({"type": way, "value": key.to_string()})
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A program of this machine; where it is absent, says so.
fn found(names: &[&str]) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&paths)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let found = files.find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: found no {} to open pages with", names[0]);
    }
    found
}

/// Sends the driver a command; gives its answer, or why there is none.
fn ask(port: u16, method: &str, path: &str, with: &Value) -> Result<Value, String> {
    let body = match with {
        Value::Null => String::new(),
        with => with.to_string(),
    };
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    let reply = raw(port, format!("{head}{body}").as_bytes());
    let said: Result<Value, _> = serde_json::from_str(&reply.body);
    let mut said = said.map_err(|error| format!("{error}: {}{}", reply.head, reply.body))?;
    match reply.status {
        200 => Ok(said["value"].take()),
        _ => Err(text(&said["value"]["message"])),
    }
}
