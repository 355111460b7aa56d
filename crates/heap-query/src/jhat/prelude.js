// The objects and functions that jhat and VisualVM offer to a query, on top of one function of the host:
// host(op, ...) -> a value; an object of the heap is passed as [number].
"use strict";
(function (global, host) {
  bound(global);
  const known = new Map();
  const OBJECT = Symbol("object");

  // ---- values passed to and from the host

  function from(v) {
    return Array.isArray(v) ? wrap(v[0]) : v;
  }

  function number(o) {
    if (o === null || o === undefined) return -1;
    const n = typeof o === "object" || typeof o === "function" ? o[OBJECT] : undefined;
    if (n !== undefined) return n;
    throw new TypeError("expected an object of the heap, got " + String(o));
  }

  function isObject(o) {
    return o !== null && typeof o === "object" && o[OBJECT] !== undefined;
  }

  function list(numbers) {
    return numbers.map(wrap);
  }

  // A scan begins with the first object, and is given back when the loop over it ends, however it ends.
  function* each(open) {
    const cursor = open();
    try {
      for (;;) {
        const batch = host("next", cursor);
        if (batch.length === 0) return;
        for (const n of batch) yield wrap(n);
      }
    } finally {
      host("close", cursor);
    }
  }

  // ---- objects of the heap: fields are read on access

  const handler = {
    get(target, name) {
      if (name === OBJECT) return target.n;
      if (typeof name === "symbol") {
        if (name === Symbol.toPrimitive) return () => text(target.n);
        if (name === Symbol.iterator && target.kind >= 2) return () => elements(target.n);
        return undefined;
      }
      return property(target, name);
    },
    has(target, name) {
      return typeof name === "string" && property(target, name) !== undefined;
    },
    ownKeys(target) {
      return host("names", target.n);
    },
    getOwnPropertyDescriptor(target, name) {
      const value = typeof name === "symbol" ? undefined : property(target, name);
      return value === undefined ? undefined : { value, enumerable: true, configurable: true };
    },
    set() { throw new TypeError("a heap cannot be changed"); },
  };

  function wrap(n) {
    if (n === null || n === undefined || n < 0) return null;
    let made = known.get(n);
    if (made === undefined) {
      if (known.size > 50000) known.clear();
      made = new Proxy({ n, kind: host("kind", n) }, handler);
      known.set(n, made);
    }
    return made;
  }

  function text(n) { return host("text", n); }

  function* elements(n) {
    const length = host("length", n);
    for (let i = 0; i < length; i++) yield from(host("element", n, i));
  }

  // kinds: 0 instance, 1 class, 2 array of references, 3 array of primitives
  function property(target, name) {
    const n = target.n;
    if (target.kind === 0) {
      const value = host("field", n, name);
      if (value !== undefined) return from(value);
    }
    if (target.kind >= 2) {
      if (name === "length") return host("length", n);
      if (/^\d+$/.test(name)) return from(host("element", n, Number(name)));
    }
    if (name === "toString") return () => text(n);
    if (name === "id") return host("id", n);
    if (name === "wrapped-object") return host("id", n);
    if (name === "hasOwnProperty") return (p) => property(target, p) !== undefined;
    if (target.kind === 1) {
      const made = classProperty(n, name);
      if (made !== undefined) return made;
    }
    if (name === "class" || name === "clazz") return wrap(host("classof", n));
    if (name === "statics") return statics(host("classof", n));
    return undefined;
  }

  function classProperty(n, name) {
    switch (name) {
      case "name": return host("className", n);
      case "superclass": return wrap(host("superclass", n));
      case "statics": return statics(n);
      case "fields": return host("fields", n).map((f) => ({ name: f[0], signature: f[1] }));
      case "loader": case "signers": case "protectionDomain": return from(host(name, n));
      case "instanceSize": return host("instanceSize", n);
      case "isSubclassOf": return (other) => host("isSubclassOf", n, className(other));
      case "isSuperclassOf": return (other) => host("isSubclassOf", classNumber(other), host("className", n));
      case "subclasses": return () => list(host("subclasses", n));
      case "superclasses": return () => list(host("superclasses", n));
      case "instances": return () => each(() => host("instances", n, false));
      default: {
        // A static field, as on the class object in Java.
        const field = host("statics", n).find((f) => f[0] === name);
        return field === undefined ? undefined : from(field[1]);
      }
    }
  }

  function statics(n) {
    const made = {};
    for (const [name, value] of host("statics", n)) made[name] = from(value);
    return made;
  }

  function className(c) { return typeof c === "string" ? c : c.name; }
  function classNumber(c) { return typeof c === "string" ? host("findClass", c) : number(c); }

  // ---- code as function or as text

  // In Rhino and Nashorn a pattern can be called: /re/(text).
  function callable(code) {
    return code.replace(/(^|[=(,&|!?:;{+\s])(\/(?![*\/])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^\/\\\n\[])+\/[gimsuy]*)\s*\(/g, "$1$2.exec(");
  }

  function compile(names, code) {
    if (typeof code === "function") return code;
    const body = callable(String(code));
    return new Function(...names, "return (" + body + "\n);");
  }

  function asIterable(c) {
    if (c === null || c === undefined) return [];
    if (typeof c[Symbol.iterator] === "function" && typeof c !== "string") return c;
    if (typeof c.hasMoreElements === "function") {
      return (function* () { while (c.hasMoreElements()) yield c.nextElement(); })();
    }
    return null;
  }

  // [value, key] of each element of a collection, or of each property of an object.
  function* entries(c) {
    const iterable = asIterable(c);
    if (iterable === null) {
      for (const key of Object.keys(c)) yield [c[key], key];
    } else {
      let i = 0;
      for (const value of iterable) yield [value, i++];
    }
  }

  // Arrays stay arrays; everything else is computed on demand.
  function like(c, made) {
    return Array.isArray(c) || isObject(c) || asIterable(c) === null ? [...made] : made;
  }

  const IT = ["it", "index", "array", "result"];
  const SIDES = ["lhs", "rhs"];

  const api = {
    allocTrace: (o) => host("allocTrace", number(o)),
    classof: (o) => wrap(host("classof", number(o))),
    forEachReferrer(callback, o) {
      callback = compile(["it"], callback);
      for (const r of api.referrers(o)) if (callback(r)) return;
    },
    forEachReferee(callback, o) {
      callback = compile(["it"], callback);
      for (const r of api.referees(o)) if (callback(r)) return;
    },
    identical: (a, b) => api.objectid(a) === api.objectid(b),
    objectid: (o) => (isObject(o) ? host("id", number(o)) : String(o)),
    printAllocTrace(o) {
      const trace = api.allocTrace(o);
      return trace === null ? null : trace.join("\n");
    },
    referrers: (o, weak) => list(host("referrers", number(o), weak === true)),
    referees: (o, weak) => list(host("referees", number(o), weak === true)),
    reachables: (o, excludes) => list(host("reachables", number(o), excludes === undefined ? "" : String(excludes))),
    refers: (a, b) => host("referees", number(a), true).includes(number(b)),
    root: (o) => host("rootsOf", number(o)).map(rootOf)[0] || null,
    sizeof: (o) => host("sizeof", number(o)),
    rsizeof: (o) => host("rsizeof", number(o)),
    rootDistance: (o) => host("rootDistance", number(o)),
    toHtml(o) {
      if (isObject(o)) return host("technical", number(o));
      if (Array.isArray(o)) return "[ " + o.map(api.toHtml).join(", ") + " ]";
      if (o !== null && typeof o === "object" && Object.getPrototypeOf(o) === Object.prototype) {
        return "{ " + Object.entries(o).map(([name, value]) => name + ": " + api.toHtml(value)).join(", ") + " }";
      }
      return String(o);
    },
    concat(...all) { return all.flatMap((c) => [...(asIterable(c) || [])]); },
    contains(c, code) {
      const test = compile(IT, code);
      for (const [it, index] of entries(c)) if (test(it, index, c)) return true;
      return false;
    },
    count(c, code) {
      const test = code === undefined ? () => true : compile(IT, code);
      let n = 0;
      for (const [it, index] of entries(c)) if (test(it, index, c)) n++;
      return n;
    },
    length: (c) => (Array.isArray(c) ? c.length : api.count(c)),
    filter(c, code) {
      const test = compile(IT, code);
      const result = [];
      return like(c, (function* () {
        for (const [it, index] of entries(c)) if (test(it, index, c, result)) yield it;
      })());
    },
    map(c, code) {
      const work = compile(IT, code);
      const result = [];
      return like(c, (function* () {
        for (const [it, index] of entries(c)) yield work(it, index, c, result);
      })());
    },
    max: (c, code) => best(c, code, (a, b) => a > b),
    min: (c, code) => best(c, code, (a, b) => a < b),
    sort(c, code) {
      const order = code === undefined ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : compile(SIDES, code);
      return api.toArray(c).sort((a, b) => Number(order(a, b)));
    },
    top(c, code, n) {
      const order = code === undefined ? (a, b) => (a < b ? 1 : a > b ? -1 : 0) : compile(SIDES, code);
      return api.toArray(c).sort((a, b) => Number(order(a, b))).slice(0, n === undefined ? 10 : n);
    },
    sum(c, code) {
      const work = code === undefined ? (it) => it : compile(IT, code);
      let sum = 0;
      for (const [it, index] of entries(c)) sum += Number(work(it, index, c));
      return sum;
    },
    toArray(c) { return [...entries(c)].map((e) => e[0]); },
    unique(c, code) {
      const key = code === undefined ? api.objectid : compile(IT, code);
      const found = new Map();
      for (const [it, index] of entries(c)) found.set(key(it, index, c), it);
      return [...found.values()];
    },
  };

  function best(c, code, plain) {
    const better = code === undefined ? plain : compile(SIDES, code);
    let found = null;
    let first = true;
    for (const [it] of entries(c)) {
      if (first || better(it, found)) found = it;
      first = false;
    }
    return found;
  }

  function rootOf([n, type]) {
    const object = wrap(n);
    return { id: object.id, type, description: type, referrer: null, object };
  }

  function instancesOf(clazz, subclasses) {
    const n = clazz === undefined || clazz === null ? host("findClass", "java.lang.Object") : classNumber(clazz);
    if (n === undefined || n < 0) throw new TypeError("there is no class " + String(clazz));
    return each(() => host("instances", n, subclasses !== false));
  }

  const heap = {
    forEachClass(callback) {
      callback = compile(["it"], callback);
      for (const c of heap.classes()) if (callback(c)) return;
    },
    forEachObject(callback, clazz, subclasses) {
      callback = compile(["it"], callback);
      for (const o of instancesOf(clazz, subclasses)) if (callback(o)) return;
    },
    findClass(name) { const n = host("findClass", String(name)); return n < 0 ? null : wrap(n); },
    findObject(id) { return wrap(host("findObject", String(id))); },
    classes: () => each(() => host("classes")),
    objects(clazz, subclasses, filter) {
      const all = instancesOf(clazz, subclasses);
      return filter === undefined ? all : api.filter(all, filter);
    },
    finalizables() {
      const finalizer = heap.findClass("java.lang.ref.Finalizer");
      const queue = finalizer && finalizer.statics.queue;
      return (function* () {
        let element = queue ? queue.head : null;
        const seen = new Set();
        while (element && !seen.has(element.id)) {
          seen.add(element.id);
          yield element.referent;
          element = element.next;
        }
      })();
    },
    livepaths: (o, weak) => host("livepaths", number(o), weak === true).map(list),
    roots: () => host("roots").map(rootOf),
    reachables: (o, excludes) => api.reachables(o, excludes),
    describeRef: (a, b) => host("describeRef", number(a), number(b)),
    toString: () => "heap",
  };

  // ---- rows

  function plain(value, depth) {
    if (value === null || value === undefined) return null;
    if (typeof value === "bigint") return Number(value);
    if (typeof value !== "object") return typeof value === "function" || typeof value === "symbol" ? String(value) : value;
    if (isObject(value)) return { object: value[OBJECT] };
    if (value instanceof RegExp || value instanceof Error || value instanceof Date) return String(value);
    if (depth > 8) return "...";
    const iterable = asIterable(value);
    const parts = [];
    if (iterable !== null) {
      for (const part of iterable) {
        if (parts.length >= 10000) { parts.push("..."); break; }
        parts.push(plain(part, depth + 1));
      }
      return parts;
    }
    for (const key of Object.keys(value)) parts.push(key + ": " + String(show(value[key])));
    return "{" + parts.join(", ") + "}";
  }

  function show(value) { return isObject(value) ? api.toHtml(value) : value; }

  // A value becomes rows: none for null, one for each element of an iterable value.
  function* rows(value, flat) {
    if (value === null || value === undefined) return;
    if (typeof value === "object" && !isObject(value)) {
      const iterable = flat ? asIterable(value) : null;
      if (iterable !== null) {
        for (const part of iterable) yield* rows(part, false);
        return;
      }
      const is = Object.getPrototypeOf(value);
      if ((is === Object.prototype || is === null) && !Array.isArray(value)) {
        const names = Object.keys(value);
        yield [names, ...names.map((name) => plain(value[name], 0))];
        return;
      }
    }
    yield [null, plain(value, 0)];
  }

  function passes(value) {
    return typeof value === "boolean" ? value : typeof value === "number" ? value !== 0 : value !== null && value !== undefined;
  }

  function* query(select, name, where, cursor) {
    if (cursor < 0) {
      yield* rows(compile([], select)(), true);
      return;
    }
    const selected = compile([name], select);
    const admits = where === "" ? () => true : compile([name], where);
    for (const o of each(() => cursor)) {
      if (passes(admits(o))) yield* rows(selected(o), true);
    }
  }

  function* script(code) {
    yield* rows((0, eval)(callable(code)), true);
  }

  // ---- limits

  // QuickJS asks whether the query must end when it calls a function or jumps back in JavaScript, not in the loops of
  // most of its own functions. Their work is bounded here, before the query can change anything.
  function bound(global) {
    const { apply } = Reflect;
    const { isArray, prototype: arrays } = Array;
    const { isPrototypeOf } = Object.prototype;
    const { isView } = ArrayBuffer;
    const text = String;

    function replace(owner, names, made) {
      for (const name of names) {
        const { value, ...about } = Object.getOwnPropertyDescriptor(owner, name);
        const wrapped = made(value);
        Object.defineProperty(wrapped, "name", { value: value.name });
        Object.defineProperty(owner, name, { ...about, value: wrapped });
      }
    }

    // An element that an array lacks is looked up in its prototypes: this one makes QuickJS ask.
    Object.setPrototypeOf(arrays, new Proxy(Object.prototype, { has: Reflect.has, get: Reflect.get }));
    Object.preventExtensions(arrays);

    // What is not such an array is copied first, by a loop of JavaScript.
    function own(o) {
      if (o === null || o === undefined || (isArray(o) && apply(isPrototypeOf, arrays, [o])) || isView(o)) return o;
      const from = Object(o);
      const length = Math.trunc(Number(from.length)) || 0;
      if (length > 4294967295) throw new RangeError("an array has at most 4294967295 elements");
      const copy = [];
      copy.length = Math.max(length, 0);
      for (let i = 0; i < length; i++) if (i in from) copy[i] = from[i];
      return copy;
    }
    replace(arrays, ["copyWithin", "entries", "fill", "flat", "flatMap", "join", "keys", "reverse", "slice", "splice",
      "toReversed", "toSpliced", "unshift", "values", "with", Symbol.iterator],
    (native) => function (...given) { return apply(native, own(this), given); });
    replace(arrays, ["concat"], (native) => function (...given) {
      return apply(native, own(this), given.map((o) => (isArray(o) ? own(o) : o)));
    });
    replace(Array, ["from"], (native) => function (items, ...given) {
      const iterable = items === null || items === undefined || items[Symbol.iterator];
      return apply(native, this, [iterable ? items : own(items), ...given]);
    });

    // A sort asks when it calls its order.
    function byText(a, b) {
      const [left, right] = [text(a), text(b)];
      return left < right ? -1 : left > right ? 1 : 0;
    }
    function byNumber(a, b) {
      return a < b ? -1 : a > b ? 1 : Number(a !== a) - Number(b !== b);
    }
    const sorts = (order) => (native) => function (given) {
      return apply(native, own(this), [given === undefined ? order : given]);
    };
    replace(arrays, ["sort", "toSorted"], sorts(byText));
    replace(Object.getPrototypeOf(Uint8Array.prototype), ["sort", "toSorted"], sorts(byNumber));

    // A search compares the text at each place.
    const WORK = 2 ** 31;
    replace(String.prototype, ["includes", "indexOf", "lastIndexOf", "replace", "replaceAll", "split"],
      (native) => function (sought, ...given) {
        if (this === null || this === undefined || sought === undefined || sought instanceof RegExp) {
          return apply(native, this, [sought, ...given]);
        }
        const [within, part] = [text(this), text(sought)];
        if (within.length * part.length > WORK) {
          throw new RangeError("a search for a text of " + part.length + " characters in one of " + within.length
            + " exceeds the limit for the product, " + WORK);
        }
        return apply(native, within, [part, ...given]);
      });
    // Marks after a letter are put in order by insertion.
    replace(String.prototype, ["normalize"], (native) => function (...given) {
      const of = text(this);
      if (of.length > 65536) throw new RangeError("normalize accepts at most 65536 characters");
      return apply(native, of, given);
    });
  }

  function stepper(generator) {
    return () => { const step = generator.next(); return step.done ? undefined : step.value; };
  }

  Object.assign(global, api);
  global.heap = heap;
  return { query: (...a) => stepper(query(...a)), script: (code) => stepper(script(code)) };
})
