//! The serializable types of a crate, as its source declares them.

use std::collections::BTreeMap;
use syn::{Attribute, Fields, GenericArgument, Item, PathArguments, UseTree};

/// What a value is in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A text.
    Text,
    /// One of these texts.
    One(Vec<String>),
    /// A whole number that is not negative.
    Whole,
    /// A whole number.
    Signed,
    /// A number.
    Real,
    /// True or false.
    Flag,
    /// Anything.
    Any,
    /// A list.
    List(Box<Shape>),
    /// A list with as many values.
    Tuple(Vec<Shape>),
    /// An object whose members have any name.
    Map(Box<Shape>),
    /// It, or null.
    Optional(Box<Shape>),
    /// A type: its name and the file that names it.
    Of(String, String),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON.
    pub name: String,
    /// Its value.
    pub shape: Shape,
    /// The comment.
    pub doc: String,
    /// It may be left out.
    pub may_lack: bool,
    /// Its members are those of the object that has it.
    pub is_flat: bool,
}

/// What a type consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// An object.
    Fields(Vec<Field>),
    /// One of several objects.
    Variants(Vec<Vec<Field>>),
    /// The same as something else.
    As(Shape),
}

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its name.
    pub name: String,
    /// The file that declares it.
    pub file: String,
    /// The comment.
    pub doc: String,
    /// Its values.
    pub body: Body,
}

/// All types.
#[derive(Debug, Default)]
pub struct Types {
    types: Vec<Type>,
    /// The names that a file uses: the modules in front of them and their own name, by file and name there.
    uses: BTreeMap<(String, String), (String, String)>,
    /// Answers that `Say::NAME` names: the name, the type, the file.
    answers: Vec<(String, String, String)>,
}

impl Types {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is not Rust.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), String> {
        let parsed = syn::parse_file(text).map_err(|error| format!("{file}: {error}"))?;
        for item in &parsed.items {
            match item {
                Item::Use(one) => self.used(file, "", &one.tree),
                Item::Struct(one) if is_serialized(&one.attrs) => {
                    let all = words(&one.attrs);
                    let body = match &one.fields {
                        Fields::Unnamed(fields) => match fields.unnamed.first() {
                            Some(only) => Body::As(shape(&only.ty, file)),
                            None => continue,
                        },
                        fields => Body::Fields(members(fields, &all, file)),
                    };
                    self.push(file, one.ident.to_string(), &one.attrs, body);
                }
                Item::Enum(one) if is_serialized(&one.attrs) => {
                    let body = variants(one, file);
                    self.push(file, one.ident.to_string(), &one.attrs, body);
                }
                Item::Impl(one) => self.say(file, one),
                _ => {}
            }
        }
        Ok(())
    }

    fn push(&mut self, file: &str, name: String, attributes: &[Attribute], body: Body) {
        self.types.push(Type {
            name,
            file: file.to_owned(),
            doc: doc(attributes),
            body,
        });
    }

    /// Remembers the path of each name of a `use`.
    fn used(&mut self, file: &str, before: &str, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                self.used(file, &format!("{before}{}::", path.ident), &path.tree);
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                let used = (before.to_owned(), name.clone());
                self.uses.insert((file.to_owned(), name), used);
            }
            UseTree::Rename(name) => {
                let key = (file.to_owned(), name.rename.to_string());
                let used = (before.to_owned(), name.ident.to_string());
                self.uses.insert(key, used);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.used(file, before, tree);
                }
            }
            UseTree::Glob(_) => {}
        }
    }

    /// `impl Say for TYPE { const NAME ... }`
    fn say(&mut self, file: &str, block: &syn::ItemImpl) {
        let is_say = |path: &syn::Path| path.segments.last().is_some_and(|it| it.ident == "Say");
        if !block
            .trait_
            .as_ref()
            .is_some_and(|(_, path, _)| is_say(path))
        {
            return;
        }
        let name = block.items.iter().find_map(|item| match item {
            syn::ImplItem::Const(one) if one.ident == "NAME" => match &one.expr {
                syn::Expr::Lit(literal) => match &literal.lit {
                    syn::Lit::Str(text) => Some(text.value()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        });
        if let (Some(name), Shape::Of(of, _)) = (name, shape(&block.self_ty, file)) {
            self.answers.push((name, of, file.to_owned()));
        }
    }

    /// The names of the answers that implement `Say`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().map(|(name, ..)| name.as_str())
    }

    /// The type of an answer by its name.
    pub fn of_answer(&self, name: &str) -> Option<&Type> {
        let (_, of, file) = self.answers.iter().find(|(known, ..)| known == name)?;
        self.find(of, file)
    }

    /// The type that a name means in a file: of this file, of the module or crate that the file uses, of its own crate,
    /// or of any.
    pub fn find(&self, name: &str, file: &str) -> Option<&Type> {
        let used = self.uses.get(&(file.to_owned(), name.to_owned()));
        let (path, name) = used.map_or(("", name), |(path, name)| (path.as_str(), name));
        let named = || self.types.iter().filter(|it| it.name == name);
        let path = path.trim_end_matches("::");
        let module = path.rsplit("::").next().unwrap_or_default();
        let of_module = [format!("/{module}.rs"), format!("/{module}/mod.rs")];
        let of_crate = path.split("::").next().unwrap_or_default();
        let of_crate = format!("crates/{}/", of_crate.replace('_', "-"));
        let own = file.split("/src/").next().unwrap_or_default();
        named()
            .find(|it| it.file == file)
            .or_else(|| named().find(|it| of_module.iter().any(|end| it.file.ends_with(end))))
            .or_else(|| named().find(|it| it.file.starts_with(&of_crate)))
            .or_else(|| named().find(|it| it.file.starts_with(own)))
            .or_else(|| named().next())
    }

    /// What a type is called: by its module, too, if there are several of its name.
    pub fn title(&self, of: &Type) -> String {
        let named = self.types.iter().filter(|it| it.name == of.name);
        if named.count() < 2 {
            return of.name.clone();
        }
        let path = of.file.trim_end_matches("/mod.rs").trim_end_matches(".rs");
        let module = path.rsplit('/').next().unwrap_or_default();
        format!("{}-of-{module}", of.name)
    }

    /// The members of an object, with those of what is flat in it; `None` if it is no object.
    pub fn members(&self, of: &Type) -> Option<Vec<Field>> {
        let mut all = Vec::new();
        match &of.body {
            Body::Fields(fields) => {
                for field in fields {
                    match field.is_flat {
                        false => all.push(field.clone()),
                        true => all.extend(self.flat(field)),
                    }
                }
            }
            Body::Variants(variants) => {
                for field in variants.iter().flatten() {
                    let is_new = !all.iter().any(|known: &Field| known.name == field.name);
                    let is_in = |fields: &Vec<Field>| fields.iter().any(|it| it.name == field.name);
                    if is_new {
                        all.push(Field {
                            may_lack: field.may_lack || !variants.iter().all(is_in),
                            ..field.clone()
                        });
                    }
                }
            }
            Body::As(_) => return None,
        }
        Some(all)
    }

    fn flat(&self, field: &Field) -> Vec<Field> {
        let (shape, may_lack) = match &field.shape {
            Shape::Optional(shape) => (&**shape, true),
            shape => (shape, false),
        };
        let Shape::Of(name, file) = shape else {
            return Vec::new();
        };
        let found = self.find(name, file).and_then(|it| self.members(it));
        let mut all = found.unwrap_or_default();
        all.iter_mut().for_each(|it| it.may_lack |= may_lack);
        all
    }
}

fn is_serialized(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        let is_it = it.path().is_ident("derive") || it.path().is_ident("cfg_attr");
        is_it
            && tokens(it)
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word == "Serialize")
    })
}

fn tokens(attribute: &Attribute) -> String {
    match &attribute.meta {
        syn::Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

/// The parts of all attributes of serde: `flatten`, `rename_all = "snake_case"`.
fn words(attributes: &[Attribute]) -> Vec<String> {
    let mut all = Vec::new();
    for one in attributes {
        let text = tokens(one);
        let text = match one.path() {
            path if path.is_ident("serde") => text,
            path if path.is_ident("cfg_attr") => match text.split_once("serde (") {
                Some((_, rest)) => rest.trim_end_matches(')').to_owned(),
                None => continue,
            },
            _ => continue,
        };
        all.extend(text.split(',').map(|part| part.trim().to_owned()));
    }
    all
}

/// The value of a part such as `rename = "kind"`.
fn given<'w>(words: &'w [String], name: &str) -> Option<&'w str> {
    let mut values = words.iter().filter_map(|word| word.split_once(" = "));
    let (_, value) = values.find(|(known, _)| known.trim() == name)?;
    Some(value.trim().trim_matches('"'))
}

fn has(words: &[String], name: &str) -> bool {
    words.iter().any(|word| word == name)
}

fn renamed(words: &[String], rule: Option<&str>, name: String) -> String {
    match (given(words, "rename"), rule) {
        (Some(name), _) => name.to_owned(),
        (None, Some("snake_case")) => snake(&name),
        (None, Some("lowercase")) => name.to_lowercase(),
        _ => name,
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.char_indices() {
        if c.is_uppercase() && at > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

fn members(fields: &Fields, of_type: &[String], file: &str) -> Vec<Field> {
    let rule = given(of_type, "rename_all");
    let member = |field: &syn::Field| {
        let own = words(&field.attrs);
        if has(&own, "skip") || has(&own, "skip_serializing") {
            return None;
        }
        let name = field.ident.as_ref()?.to_string();
        let name = name.trim_start_matches("r#").to_owned();
        let custom = given(&own, "serialize_with").or(given(&own, "with"));
        let condition = given(&own, "skip_serializing_if");
        Some(Field {
            name: renamed(&own, rule, name),
            shape: match (custom, shape(&field.ty, file)) {
                (Some(_), _) => Shape::Any,
                // It is left out where it would be null.
                (None, Shape::Optional(of)) if condition == Some("Option::is_none") => *of,
                (None, shape) => shape,
            },
            doc: doc(&field.attrs),
            may_lack: condition.is_some(),
            is_flat: has(&own, "flatten"),
        })
    };
    fields.iter().filter_map(member).collect()
}

fn variants(one: &syn::ItemEnum, file: &str) -> Body {
    let all = words(&one.attrs);
    let rule = given(&all, "rename_all");
    let name =
        |variant: &syn::Variant| renamed(&words(&variant.attrs), rule, variant.ident.to_string());
    if one.variants.iter().all(|it| it.fields.is_empty()) && given(&all, "tag").is_none() {
        return Body::As(Shape::One(one.variants.iter().map(name).collect()));
    }
    let tag = given(&all, "tag");
    if tag.is_none() && !has(&all, "untagged") {
        return Body::As(Shape::Any);
    }
    let fields = |variant: &syn::Variant| {
        let tag = tag.map(|tag| Field {
            name: tag.to_owned(),
            shape: Shape::One(vec![name(variant)]),
            doc: doc(&variant.attrs),
            may_lack: false,
            is_flat: false,
        });
        tag.into_iter()
            .chain(members(&variant.fields, &[], file))
            .collect()
    };
    let mut found: Vec<Vec<Field>> = one.variants.iter().map(fields).collect();
    if let Some(tag) = tag {
        let names: Vec<String> = one.variants.iter().map(name).collect();
        for field in found.iter_mut().flatten().filter(|it| it.name == tag) {
            field.shape = Shape::One(names.clone());
            field.doc = "What it is.".to_owned();
        }
    }
    Body::Variants(found)
}

fn shape(of: &syn::Type, file: &str) -> Shape {
    match of {
        syn::Type::Reference(inner) => shape(&inner.elem, file),
        syn::Type::Paren(inner) => shape(&inner.elem, file),
        syn::Type::Slice(inner) => Shape::List(Box::new(shape(&inner.elem, file))),
        syn::Type::Array(inner) => Shape::List(Box::new(shape(&inner.elem, file))),
        syn::Type::Tuple(all) => Shape::Tuple(all.elems.iter().map(|it| shape(it, file)).collect()),
        syn::Type::Path(path) => match path.path.segments.last() {
            Some(last) => named(last, file),
            None => Shape::Any,
        },
        _ => Shape::Any,
    }
}

fn named(segment: &syn::PathSegment, file: &str) -> Shape {
    let mut inner: Vec<Shape> = match &segment.arguments {
        PathArguments::AngleBracketed(all) => all
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(of) => Some(shape(of, file)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    let last = inner.pop();
    match (segment.ident.to_string().as_str(), last) {
        ("Option", Some(of)) => Shape::Optional(Box::new(of)),
        ("Vec" | "BTreeSet" | "VecDeque", Some(of)) => Shape::List(Box::new(of)),
        ("BTreeMap" | "HashMap" | "FxHashMap", Some(of)) => Shape::Map(Box::new(of)),
        ("Box" | "Arc" | "Rc" | "Cow", Some(of)) => of,
        // These write themselves.
        ("String" | "str" | "Address" | "PathBuf" | "char", _) => Shape::Text,
        ("u8" | "u16" | "u32" | "u64" | "usize", _) => Shape::Whole,
        ("i8" | "i16" | "i32" | "i64" | "isize", _) => Shape::Signed,
        ("f32" | "f64", _) => Shape::Real,
        ("bool", _) => Shape::Flag,
        (name, _) => Shape::Of(name.to_owned(), file.to_owned()),
    }
}

/// The comment in one line, without links to code.
fn doc(attributes: &[Attribute]) -> String {
    let mut lines = Vec::new();
    for one in attributes.iter().filter(|it| it.path().is_ident("doc")) {
        if let syn::Meta::NameValue(pair) = &one.meta
            && let syn::Expr::Lit(literal) = &pair.value
            && let syn::Lit::Str(text) = &literal.lit
        {
            lines.push(text.value().trim().to_owned());
        }
    }
    let text = lines.join(" ");
    text.replace("[`", "`").replace("`]", "`").trim().to_owned()
}
