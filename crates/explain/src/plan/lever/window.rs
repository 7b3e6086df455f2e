//! A larger initial window at the server.

use super::{About, Asks, Kind, Lever, Unpulled};
use crate::plan::Setting;

pub(super) const LEVER: Lever = Lever {
    name: "window",
    doc: "a larger initial congestion window at the server: RFC 6928 has 10 segments; of CDNs, Akamai had 32, \
          CloudFront 25, Fastly and Cloudflare 10 (CDN Planet, February 2017; nothing newer is published)",
    about: About::Certificates,
    kind: Kind::Own {
        pull: |setting, amounts| {
            let mut setting = Setting { ..setting.clone() };
            if setting.cell.initcwnd >= amounts.initcwnd {
                return Err(Unpulled::WindowAlready {
                    count: setting.cell.initcwnd,
                    transport: setting.arm.transport,
                });
            }
            setting.cell.initcwnd = amounts.initcwnd;
            Ok(setting)
        },
        words: |setting, amounts| {
            let packet = setting.arm.transport.packet();
            format!("a window of {} {packet}s", amounts.initcwnd)
        },
        asks: Asks::Server,
    },
};
