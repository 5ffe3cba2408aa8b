//! What every request passes before a page is made: by which name it asks, who asks, and that a form is one of ours.
//!
//! * A host that is not configured is refused, so that no other site's name can be pointed here (DNS rebinding).
//! * On loopback a browser is let in by the address that the program prints at its start; behind a proxy by the proxy's
//!   secret and the user that it names.
//! * Whatever changes something is a form with the browser's own token.
//! * No answer is stored, framed, or referred from. Nothing is loaded from elsewhere, and no script runs but the program's own.

use super::frame;
use super::shelf::{Session, is_same, random};
use super::{Access, Door};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a form, at most.
const BODY_MAX: usize = 256 * 1024;
/// How long a form may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(20);
/// What a page may load and do: its style and pictures from here, and forms to here.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// The same, and the program's own script, which may ask here alone.
const POLICY_WITH_SCRIPT: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
     script-src 'self'; connect-src 'self'";
/// The field of a form that shows that it is one of ours.
pub(super) const TOKEN: &str = "token";
/// Letters of a user's name, at most.
const USER_MAX: usize = 128;

/// Who asks.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The name of its session.
    pub session: String,
    /// What each of its forms carries.
    pub token: String,
    /// The user, as the proxy names them.
    pub user: Option<String>,
}

impl Visitor {
    /// Who it is, in a log.
    #[must_use]
    pub fn name(&self) -> &str {
        self.user.as_deref().unwrap_or("this machine")
    }
}

/// The fields of a form, which has shown that it is one of ours.
#[derive(Debug, Clone, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// These fields.
    pub fn of(fields: impl Iterator<Item = (String, String)>) -> Self {
        Self(fields.collect())
    }

    /// The field of this name, without spaces around it; empty where there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value.trim())
    }

    /// The field of this name as it was sent, its lines ended by `\\n`; empty where there is none.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map_or_else(String::new, |(_, value)| value.replace("\r\n", "\n"))
    }

    /// Whether a box of this name was ticked.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }
}

/// Lets a request pass, or says why not, and seals the answer.
pub(super) async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let mut response = match admit(&door, request).await {
        Ok((request, cookie)) => {
            let mut response = next.run(request).await;
            if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok()) {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        Err(refused) => refused.into_response(),
    };
    seal(response.headers_mut(), door.frame.script.is_some());
    response
}

fn seal(headers: &mut HeaderMap, has_script: bool) {
    let content = match has_script {
        true => POLICY_WITH_SCRIPT,
        false => POLICY,
    };
    let all: [(HeaderName, &str); 7] = [
        (header::CONTENT_SECURITY_POLICY, content),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in all {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// The request with who asks and what the form says, and the cookie of a browser that is new.
async fn admit(door: &Arc<Door>, request: Request) -> Result<(Request, Option<String>), Refused> {
    if !is_known_host(door, request.headers()) {
        tracing::warn!("a request by the name of another host was refused");
        let text = "This program does not answer by that name. Its names are in hosts of [pages].";
        return Err(refusal(StatusCode::MISDIRECTED_REQUEST, text));
    }
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path();
    // They hold nothing of anybody.
    if matches!(
        path,
        frame::STYLE_PATH | frame::SCRIPT_PATH | frame::ICON_PATH
    ) {
        return Ok((Request::from_parts(parts, body), None));
    }
    let (visitor, cookie) = visitor(door, &parts.headers, path)?;
    match parts.method {
        Method::GET | Method::HEAD => {}
        _ => {
            let form = form(&parts.headers, body).await?;
            if cookie.is_some() || !is_same(form.get(TOKEN), &visitor.token) {
                tracing::warn!(
                    user = visitor.name(),
                    "a form that is not of this browser was refused"
                );
                let text = "This form has ended, or is not of this browser. Go back, load the page again, and send it anew.";
                return Err(refusal(StatusCode::FORBIDDEN, text));
            }
            parts.extensions.insert(form);
            parts.extensions.insert(visitor);
            return Ok((Request::from_parts(parts, Body::empty()), None));
        }
    }
    parts.extensions.insert(visitor);
    Ok((Request::from_parts(parts, body), cookie))
}

/// Why a request does not pass.
struct Refused {
    status: StatusCode,
    text: &'static str,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, frame::bare(self.text)).into_response()
    }
}

fn refusal(status: StatusCode, text: &'static str) -> Refused {
    Refused { status, text }
}

fn is_known_host(door: &Door, headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    host.is_some_and(|host| door.hosts.contains(&host.to_lowercase()))
}

/// Who asks; of a browser that is new its session begins, where it is let in.
fn visitor(
    door: &Door,
    headers: &HeaderMap,
    path: &str,
) -> Result<(Visitor, Option<String>), Refused> {
    let user = user(door, headers)?;
    let names = headers.get_all(header::COOKIE).iter();
    let names = names.filter_map(|value| value.to_str().ok());
    let mut names = names.flat_map(|value| value.split(';'));
    let session = names.find_map(|pair| {
        let pair = pair.trim().strip_prefix(door.cookie.as_str())?;
        pair.strip_prefix('=')
    });
    if let Some(session) = session
        && let Some(known) = door.sessions().get(session)
        && known.user == user
    {
        let visitor = Visitor {
            session: session.to_owned(),
            token: known.token.clone(),
            user,
        };
        return Ok((visitor, None));
    }
    if let Access::Key(key) = &door.access
        && !path
            .strip_prefix(super::ENTER)
            .is_some_and(|given| is_same(given, key))
    {
        return Err(refusal(StatusCode::FORBIDDEN, door.frame.closed));
    }
    begin(door, user).map_err(|_| {
        let text = "The system has nothing random.";
        refusal(StatusCode::INTERNAL_SERVER_ERROR, text)
    })
}

/// The user, as the proxy names them; nobody without a proxy.
fn user(door: &Door, headers: &HeaderMap) -> Result<Option<String>, Refused> {
    let Access::Proxy {
        secret,
        secret_header,
        user_header,
    } = &door.access
    else {
        return Ok(None);
    };
    let given = text_of(headers, secret_header).unwrap_or_default();
    if !is_same(given, secret.reveal()) {
        tracing::warn!("a request that did not come from the proxy was refused");
        let text = "Only the proxy of these pages may ask.";
        return Err(refusal(StatusCode::FORBIDDEN, text));
    }
    let user = text_of(headers, user_header).filter(|user| is_user(user));
    let text = "The proxy does not say who asks.";
    let user = user.ok_or_else(|| refusal(StatusCode::FORBIDDEN, text))?;
    Ok(Some(user.to_owned()))
}

/// The session of a browser that is new, and its cookie.
fn begin(door: &Door, user: Option<String>) -> io::Result<(Visitor, Option<String>)> {
    let token = random()?;
    let session = door.sessions().keep(Session {
        token: token.clone(),
        user: user.clone(),
    })?;
    // The proxy speaks HTTPS with browsers.
    let secure = if user.is_some() { "; Secure" } else { "" };
    let cookie = format!(
        "{}={session}; Path=/; HttpOnly; SameSite=Strict{secure}",
        door.cookie
    );
    let visitor = Visitor {
        session,
        token,
        user,
    };
    Ok((visitor, Some(cookie)))
}

fn text_of<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    // Two of one name: one of them may be of whoever asks the proxy.
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        (_, Some(_)) | (None, None) => None,
    }
}

fn is_user(user: &str) -> bool {
    let length = user.chars().count();
    (1..=USER_MAX).contains(&length) && !user.chars().any(char::is_control)
}

/// The fields of a form.
async fn form(headers: &HeaderMap, body: Body) -> Result<Form, Refused> {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let kind = kind
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    if kind.trim() != "application/x-www-form-urlencoded" {
        let text = "Only forms of these pages can be sent here.";
        return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let read = tokio::time::timeout(BODY_PATIENCE, to_bytes(body, BODY_MAX)).await;
    let bytes = match read {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(_)) => {
            let text = "The form is too large, or its end did not come.";
            return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        Err(_) => {
            let text = "The form did not come in time.";
            return Err(refusal(StatusCode::REQUEST_TIMEOUT, text));
        }
    };
    let fields = form_urlencoded::parse(&bytes).into_owned();
    Ok(Form(fields.collect()))
}
