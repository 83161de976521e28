//! The live carrier: a session of 2025-11-25 is asked by the server's own requests, and the call waits.

use std::collections::BTreeMap;

use futures::future::join_all;
use mcp_tasks_core::{InputKind, InputRequest, Json, Refusal, TaskId};
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, InputRequest as WireRequest, ServerRequest};
use rmcp::service::{Peer, ServiceError};

use super::round::Round;

impl Round {
    /// Asks the session's client all open questions at once, and takes its answers. A client that answers with an error
    /// cannot be asked again; the body is told.
    ///
    /// # Errors
    /// When the session is gone.
    pub(crate) async fn ask(&mut self, peer: &Peer<RoleServer>) -> Result<(), ServiceError> {
        let call = &self.id;
        let asked = self.open.iter().map(|request| async move {
            let answer = match to_server_request(call, request) {
                Ok(request) => peer.send_request(request).await,
                Err(detail) => Err(ServiceError::McpError(rmcp::ErrorData::internal_error(detail, None))),
            };
            (request.key.clone(), request.kind, answer)
        });
        let mut responses = BTreeMap::new();
        let mut refused = Vec::new();
        for (key, kind, answer) in join_all(asked).await {
            match answer {
                Ok(result) => match Json::of(&result) {
                    Ok(json) => {
                        responses.insert(key.to_string(), json);
                    }
                    Err(error) => refused.push((key, error.to_string())),
                },
                Err(ServiceError::McpError(error)) => refused.push((key, error.message.to_string())),
                Err(ServiceError::UnexpectedResponse) => refused.push((key, unexpected(kind))),
                Err(error) => return Err(error),
            }
        }
        let open = self.open.clone();
        for (key, detail) in refused {
            self.refuse(&key, &Refusal::client(detail));
        }
        self.answer(&responses);
        // What is open under the same key still was answered by something that is no answer. Asking the same again would
        // go on for ever.
        let stuck: Vec<_> = self
            .open
            .iter()
            .filter(|request| open.iter().any(|before| before.key == request.key))
            .map(|request| (request.key.clone(), unexpected(request.kind)))
            .collect();
        for (key, detail) in stuck {
            self.refuse(&key, &Refusal::client(detail));
        }
        Ok(())
    }
}

fn unexpected(kind: InputKind) -> String {
    format!("the client's answer is not what {} is answered with", kind.method())
}

/// The question as a request of the server's own.
fn to_server_request(call: &TaskId, request: &InputRequest) -> Result<ServerRequest, String> {
    match request.request.decode::<WireRequest>() {
        Ok(WireRequest::Elicitation(mut elicitation)) => {
            // 2025-11-25 tells URL questions apart by an id that no other of this server has ("Elicitation", "URL Mode
            // Elicitation Requests"), which 2026-07-28 has no more.
            if let ElicitRequestParams::UrlElicitationParams { elicitation_id, .. } = &mut elicitation.params
                && elicitation_id.is_empty()
            {
                *elicitation_id = format!("{call}-{}", request.key);
            }
            Ok(ServerRequest::ElicitRequest(elicitation))
        }
        Ok(WireRequest::CreateMessage(sampling)) => Ok(ServerRequest::CreateMessageRequest(sampling)),
        Ok(WireRequest::ListRoots(roots)) => Ok(ServerRequest::ListRootsRequest(roots)),
        Ok(_) => Err("the question is of a kind that a session cannot be asked".to_owned()),
        Err(error) => Err(format!("the question cannot be sent: {error}")),
    }
}
