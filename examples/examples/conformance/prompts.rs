//! Prompts and the completion of their arguments.

use rmcp::model::{
    CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, ErrorData, GetPromptResult, JsonObject,
    ListPromptsResult, Prompt, PromptArgument, PromptMessage, Reference, ResourceContents, Role,
};

use crate::{
    changes::Changes,
    content::PNG,
    questions::{Call, Stop},
};

const EXTRA: &str = "test_changing_prompt";

/// `prompts/list`.
pub(crate) fn list(changes: &Changes) -> ListPromptsResult {
    let required = |name: &str, description: &str| {
        PromptArgument::new(name)
            .with_description(description)
            .with_required(true)
    };
    let mut prompts = vec![
        Prompt::new("test_simple_prompt", Some("A prompt without arguments"), None),
        Prompt::new(
            "test_prompt_with_arguments",
            Some("A prompt with two required arguments"),
            Some(vec![
                required("arg1", "First test argument"),
                required("arg2", "Second test argument"),
            ]),
        ),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            Some("A prompt that embeds a resource"),
            Some(vec![required("resourceUri", "URI of the resource to embed")]),
        ),
        Prompt::new("test_prompt_with_image", Some("A prompt with an image"), None),
        Prompt::new(
            "test_input_required_result_prompt",
            Some("A prompt that asks for its context first"),
            None,
        ),
    ];
    if changes.extra_prompt() {
        prompts.push(Prompt::new(EXTRA, Some("A prompt that comes and goes"), None));
    }
    ListPromptsResult::with_all_items(prompts)
}

/// `prompts/get`.
pub(crate) async fn get(name: &str, call: &Call<'_>) -> Result<GetPromptResult, Stop> {
    let user = |content| PromptMessage::new(Role::User, content);
    let messages = match name {
        "test_simple_prompt" => vec![user(ContentBlock::text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            let (arg1, arg2) = (argument(&call.arguments, "arg1")?, argument(&call.arguments, "arg2")?);
            vec![user(ContentBlock::text(format!(
                "Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"
            )))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = argument(&call.arguments, "resourceUri")?;
            let resource =
                ResourceContents::text("Embedded resource content for testing.", uri).with_mime_type("text/plain");
            vec![
                user(ContentBlock::resource(resource)),
                user(ContentBlock::text("Please process the embedded resource above.")),
            ]
        }
        "test_prompt_with_image" => vec![
            user(ContentBlock::image(PNG, "image/png")),
            user(ContentBlock::text("Please analyze the image above.")),
        ],
        "test_input_required_result_prompt" => {
            let context = call.ask_text("user_context", "What context should the prompt use?", "context")?;
            vec![user(ContentBlock::text(format!("Use this context: {context}")))]
        }
        EXTRA if call.fixtures.changes().extra_prompt() => {
            vec![user(ContentBlock::text("This prompt is listed only at times."))]
        }
        _ => return Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None).into()),
    };
    Ok(GetPromptResult::new(messages))
}

fn argument<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    arguments
        .get(name)
        .and_then(|value| value.as_str())
        .ok_or_else(|| ErrorData::invalid_params(format!("Missing argument: {name}"), None))
}

/// `completion/complete`: words that begin as the user typed.
pub(crate) fn complete(request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
    let known: &[&str] = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Prompt(prompt), "arg1" | "arg2") if prompt.name == "test_prompt_with_arguments" => {
            &["paris", "park", "party", "test", "testing"]
        }
        (Reference::Resource(resource), "id") if resource.uri == "test://template/{id}/data" => &["1", "12", "123"],
        _ => &[],
    };
    let values = known
        .iter()
        .filter(|word| word.starts_with(&request.argument.value))
        .map(|word| (*word).to_owned())
        .collect();
    let completion = CompletionInfo::with_all_values(values).map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(completion))
}
