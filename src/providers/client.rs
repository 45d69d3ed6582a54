//! The HTTP client that all of them have.

use std::time::Duration;

use reqwest::{Client, Url, redirect};

/// A client for requests to an address.
pub(super) fn client(
    url: &Url,
    connect_timeout: Duration,
    redirects: redirect::Policy,
) -> Result<Client, reqwest::Error> {
    // The first in the process stays. `ring` is built in 8 s, `aws-lc-rs` in 130 s (two busy cores).
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .user_agent(concat!("tenterhook/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .redirect(redirects);
    if url.scheme() == "http" {
        // A server in the next room is to be reached where the system has no certificates, too: slim containers have none.
        client = client.tls_certs_only([]);
    }
    client.build()
}
