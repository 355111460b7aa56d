//! The end of the server, as requests see it.

use tokio::sync::watch;

/// True from the moment on when the server is to end. In the extensions of every request, so that
/// endless answers can end.
#[derive(Clone, Debug)]
pub struct Stop(pub watch::Receiver<bool>);

impl Stop {
    /// Returns when the server is to end.
    pub async fn stopped(&mut self) {
        // An error means that the sender is gone, which is the end as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
