//! The doctor's table: all that an agent needs, from its configuration to its data.

use super::{AtDesk, By};
use crate::doctor;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use report::{Part, Table};
use service::pages::{Page, token};
use tokio::runtime::Handle;

/// It reads all data and calls the coordinator, so nobody does it by looking.
pub(super) async fn offer(State(desk): AtDesk, Extension(visitor): By) -> Response {
    let body = html! {
        p { "The checkup looks at configuration, certificate, coordinator, folder, journal, studies and data. It changes nothing." }
        form method="post" action="/checkup" { (token(&visitor)) button type="submit" { "Look now" } }
    };
    let page = Page {
        title: "Checkup",
        way: "/checkup",
        body,
    };
    desk.door.page(&visitor, page)
}

/// What was found.
pub(super) async fn show(State(desk): AtDesk, Extension(visitor): By) -> Response {
    desk.work(visitor, |desk, visitor| {
        let checkup = Handle::current().block_on(doctor::examine(&desk.config));
        let lead = match checkup.is_well() {
            true => "All is well.",
            false => "Something is to be mended.",
        };
        let row = |row: [&str; 4]| {
            let [standing, check, found, mend] = row;
            [check, standing, found, mend].map(str::to_owned).to_vec()
        };
        let table = Table {
            title: "What was found".to_owned(),
            caption: checkup.sentence(),
            header: ["check", "standing", "found", "to mend"].map(str::to_owned).to_vec(),
            rows: checkup.rows().map(row).collect(),
        };
        let body = html! {
            (report::answer(&[lead.to_owned()]))
            (report::part(&Part::Table(table)))
            form.screen method="post" action="/checkup" { (token(visitor)) button type="submit" { "Look again" } }
        };
        let page = Page {
            title: "Checkup",
            way: "/checkup",
            body,
        };
        Ok(desk.door.page(visitor, page))
    })
    .await
}
