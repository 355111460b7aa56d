//! Informs requests that the server is ending.

use tokio::sync::watch;

/// True as soon as the server is to end. It is an extension of every request, so that endless responses can end.
#[derive(Clone, Debug)]
pub struct Stop(pub watch::Receiver<bool>);

impl Stop {
    /// Returns when the server is to end.
    pub async fn stopped(&mut self) {
        // An error means that the sender is gone, which is the end as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
