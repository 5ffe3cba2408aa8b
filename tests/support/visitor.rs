//! A browser that looks at the pages of a program: it keeps its cookie, and sends forms.

use crate::deployment::free_port;
use crate::programs::{Home, Process, site_agent};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::ops::{Deref, DerefMut};

/// Has north learn by `job.toml` from its patients alone; what that leaves stands among the site's runs as `run`.
pub fn learn_alone(home: &Home, run: &str) {
    let arguments = [
        "local",
        "job.toml",
        "--data",
        "data/north.csv",
        "--id",
        "patient",
        "--out",
        "out",
    ];
    home.run(&site_agent(), &arguments).must_succeed();
    fs::create_dir_all(home.join("sites/north/runs")).expect("a folder of runs");
    let run = home.join(&format!("sites/north/runs/{run}"));
    fs::rename(home.join("out/patients"), run).expect("what stays at the site");
}

/// An answer of the pages.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The code of HTTP.
    pub status: u16,
    /// The lines of its head.
    pub head: String,
    /// What follows.
    pub body: String,
}

impl Reply {
    /// The header of this name; empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value)
    }

    /// It has this code, and its body holds all of `wanted`.
    #[track_caller]
    pub fn must(self, status: u16, wanted: &[&str]) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        for text in wanted {
            assert!(
                self.body.contains(text),
                "wanted {text:?} in:\n{}",
                self.body
            );
        }
        self
    }
}

/// The pages of a site, and a browser.
pub struct Visitor {
    /// The pages.
    pub pages: Process,
    browser: Browser,
}

impl Deref for Visitor {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}

impl DerefMut for Visitor {
    fn deref_mut(&mut self) -> &mut Browser {
        &mut self.browser
    }
}

/// A browser.
pub struct Browser {
    port: u16,
    /// The way by which the program lets a browser in.
    pub enter: String,
    /// The cookie of the browser; empty before it has one.
    pub cookie: String,
    /// What every form of it carries; empty before it has seen one.
    pub token: String,
}

/// Where a site's pages listen, as a table of its configuration.
pub fn listening() -> (u16, String) {
    let port = free_port();
    (port, format!("\n[pages]\nlisten = \"127.0.0.1:{port}\"\n"))
}

/// Sends bytes as they are, and reads what comes back.
pub fn raw(port: u16, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the pages listen");
    // The other side may refuse a body before its end.
    let _ = stream.write_all(request);
    let (mut bytes, mut part) = (Vec::new(), [0; 64 * 1024]);
    // Not every server ends its line after an answer.
    while !is_whole(&bytes)
        && let Ok(read @ 1..) = stream.read(&mut part)
    {
        bytes.extend(&part[..read]);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Reply {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: unchunked(head, body),
    }
}

/// Whether an answer has the length that it states.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let mut lines = head.lines();
    let stated = lines.find_map(|line| line.strip_prefix("content-length:"));
    let stated = stated.and_then(|length| length.trim().parse::<usize>().ok());
    stated.is_some_and(|length| bytes.len() >= end + 4 + length)
}

/// A body without the marks of its chunks.
fn unchunked(head: &str, body: &str) -> String {
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut whole) = (body.as_bytes(), Vec::new());
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(size) = size.filter(|size| *size > 0) else {
            break;
        };
        whole.extend(&rest[end + 2..end + 2 + size]);
        rest = &rest[(end + size + 4).min(rest.len())..];
    }
    String::from_utf8_lossy(&whole).into_owned()
}

/// A form as a browser sends it.
pub fn encoded(fields: &[(&str, &str)]) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    let encode = |text: &str| text.bytes().map(letter).collect::<String>();
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

impl Visitor {
    /// Starts the pages of the configuration `config`, which listen on `port`, and opens the address that they print.
    pub fn start(home: &Home, config: &str, port: u16) -> Self {
        let mut visitor = Self::outside(home, config, port);
        visitor.browser.enter();
        visitor
    }

    /// Starts the pages, with a browser that has not been let in.
    pub fn outside(home: &Home, config: &str, port: u16) -> Self {
        let mut pages = home.start("pages", &site_agent(), &["pages", "--config", config]);
        pages.wait_for("the pages answer");
        let browser = Browser::outside(port, &pages.log());
        Self { pages, browser }
    }
}

impl Browser {
    /// A browser that has not been let in by the address that stands in `said`, where it has a key.
    pub fn outside(port: u16, said: &str) -> Self {
        let enter = said.split_once("/enter/").map(|(_, rest)| rest);
        let enter = enter
            .and_then(|rest| rest.lines().next())
            .unwrap_or_default();
        Self {
            port,
            enter: format!("/enter/{enter}"),
            cookie: String::new(),
            token: String::new(),
        }
    }

    /// The whole address of a page.
    pub fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Opens the address with the key, and keeps the cookie.
    #[track_caller]
    pub fn enter(&mut self) {
        let entered = self.get(&self.enter.clone());
        assert_eq!(entered.status, 303, "{}", entered.body);
        self.keep_cookie(&entered);
    }

    /// Keeps the cookie of an answer.
    pub fn keep_cookie(&mut self, reply: &Reply) {
        let cookie = reply.header("set-cookie").split(';').next();
        self.cookie = cookie.unwrap_or_default().to_owned();
    }

    /// Sends a request with these lines in its head besides its host and cookie.
    pub fn send(&self, method: &str, path: &str, lines: &[&str], body: &str) -> Reply {
        let port = self.port;
        let has_host = lines.iter().any(|line| line.starts_with("Host:"));
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !has_host {
            request.push_str(&format!("Host: 127.0.0.1:{port}\r\n"));
        }
        if !self.cookie.is_empty() {
            request.push_str(&format!("Cookie: {}\r\n", self.cookie));
        }
        for line in lines {
            request.push_str(&format!("{line}\r\n"));
        }
        if method == "POST" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        raw(port, format!("{request}\r\n{body}").as_bytes())
    }

    /// Looks at a page, and keeps the token of its forms.
    pub fn get(&mut self, path: &str) -> Reply {
        let reply = self.send("GET", path, &[], "");
        let token = reply
            .body
            .split_once("name=\"token\" value=\"")
            .map(|(_, rest)| rest);
        if let Some(token) = token.and_then(|rest| rest.split('"').next()) {
            self.token = token.to_owned();
        }
        reply
    }

    /// Sends a form with the token.
    pub fn post(&self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let mut all = vec![("token", self.token.as_str())];
        all.extend(fields);
        let kind = "Content-Type: application/x-www-form-urlencoded";
        self.send("POST", path, &[kind], &encoded(&all))
    }

    /// Sends a form, and looks at the page that it leads to; gives its path as well.
    #[track_caller]
    pub fn follow(&mut self, path: &str, fields: &[(&str, &str)]) -> (String, Reply) {
        let sent = self.post(path, fields);
        assert_eq!(sent.status, 303, "{}\n{}", sent.head, sent.body);
        let leads = sent.header("location").to_owned();
        let page = leads.split('#').next().unwrap_or_default().to_owned();
        let reply = self.get(&page);
        (page, reply)
    }
}
