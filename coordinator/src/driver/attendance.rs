//! Sites that come, speak and go.

use super::{Connected, Course, Driver};
use protocol::failure::{Code, Failure};
use protocol::message::{Answer, Reply, ToCoordinator};
use protocol::name::SiteName;
use protocol::run::Event;
use wire::{ConnectionError, SiteReceiver, SiteSender};

/// What a site said, or that its stream ended.
pub(super) struct Heard {
    site: SiteName,
    connection: u64,
    message: Said,
}

enum Said {
    Message(ToCoordinator<Answer>),
    /// Its stream has ended. What the site did wrong, where that is why.
    Nothing(Option<ConnectionError>),
}

impl Driver {
    pub(super) fn site_came(
        &mut self,
        site: SiteName,
        version: &str,
        sender: SiteSender,
        mut receiver: SiteReceiver,
    ) {
        self.connections += 1;
        let number = self.connections;
        tracing::info!(%site, version, "a site joined");
        if let Some(old) = self.sites.remove(&site) {
            self.add_past(&site, old.sender.traffic());
            let text = "the site has opened another stream";
            old.sender.close(Failure::new(Code::Replaced, text));
        }
        self.note_presence(&site, Some(version));
        self.sites
            .insert(site.clone(), Connected { number, sender });
        let heard = self.heard.clone();
        let name = site.clone();
        tokio::spawn(async move {
            loop {
                let message = match receiver.next().await {
                    // The program ends, and with it this stream.
                    _ if heard.is_closed() => return,
                    Ok(Some(message)) => Said::Message(message),
                    Ok(None) => {
                        tracing::info!(site = %name, "a site has left");
                        Said::Nothing(None)
                    }
                    Err(error) => {
                        tracing::warn!(site = %name, %error, "lost a site");
                        Said::Nothing(Some(error).filter(|error| error.code() == Code::Protocol))
                    }
                };
                let over = matches!(message, Said::Nothing(_));
                let said = Heard {
                    site: name.clone(),
                    connection: number,
                    message,
                };
                if heard.send(said).await.is_err() || over {
                    return;
                }
            }
        });
        self.offer(&site);
        self.feed(Event::Connected(site));
    }

    pub(super) fn hear(&mut self, heard: Heard) {
        let Heard {
            site,
            connection,
            message,
        } = heard;
        let current = self
            .sites
            .get(&site)
            .is_some_and(|known| known.number == connection);
        match message {
            Said::Message(ToCoordinator::Reply(Reply {
                run,
                exchange,
                answer,
                journal,
                signature,
            })) if current => {
                let note = self.journals.heard(&site, journal);
                if self
                    .active
                    .as_ref()
                    .is_some_and(|course| *course.run() == run)
                {
                    if let Some(note) = note {
                        tracing::warn!(%site, "{note}");
                        self.feed(Event::Noted(note));
                    }
                    self.feed(Event::Answered {
                        site,
                        exchange,
                        answer,
                        signature,
                    });
                }
            }
            Said::Message(ToCoordinator::Approved(approved)) if current => {
                self.hear_approval(site, approved);
            }
            Said::Nothing(fault) if current => {
                let is_of_run = |course: &Course| course.job().sites.contains(&site);
                if let Some(fault) = fault
                    && self.active.as_ref().is_some_and(is_of_run)
                {
                    self.feed(Event::Noted(format!("{site} was cut off: {fault}")));
                }
                if let Some(gone) = self.sites.remove(&site) {
                    self.add_past(&site, gone.sender.traffic());
                }
                self.note_presence(&site, None);
                self.feed(Event::Disconnected(site));
            }
            Said::Message(
                ToCoordinator::Hello { .. }
                | ToCoordinator::Reply { .. }
                | ToCoordinator::Approved(_),
            )
            | Said::Nothing(_) => {}
        }
    }
}
