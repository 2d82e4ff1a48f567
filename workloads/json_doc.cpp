#define SIMDJSON_EXCEPTIONS 0
#include <simdjson.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "workloads/json_doc.h"

using namespace simdjson;

namespace
{
const char *const NO_MEMORY = "too large for the memory at hand";

template <typename T> struct Pool {
    T *data = nullptr;
    size_t n = 0, capacity = 0;
    bool reserve(size_t more)
    {
        if (n + more <= capacity)
            return true;
        size_t want = capacity * 2 + more + 64;
        T *bigger = static_cast<T *>(std::realloc(data, want * sizeof(T)));
        if (bigger == nullptr)
            return false;
        data = bigger;
        capacity = want;
        return true;
    }
    ~Pool()
    {
        std::free(data);
    }
};

bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view token)
{
    while (!token.empty() && (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' ||
                              token.back() == '\t'))
        token.remove_suffix(1);
    return token;
}

/* RFC 8259: -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)? */
bool is_number(std::string_view t)
{
    size_t i = !t.empty() && t[0] == '-' ? 1 : 0, n = t.size(), start = i;
    while (i < n && is_digit(t[i]))
        i++;
    if (i == start || (t[start] == '0' && i > start + 1))
        return false;
    if (i < n && t[i] == '.') {
        start = ++i;
        while (i < n && is_digit(t[i]))
            i++;
        if (i == start)
            return false;
    }
    if (i < n && (t[i] == 'e' || t[i] == 'E')) {
        i++;
        if (i < n && (t[i] == '+' || t[i] == '-'))
            i++;
        start = i;
        while (i < n && is_digit(t[i]))
            i++;
        if (i == start)
            return false;
    }
    return i == n;
}

/* A whole number of 64 bits; false on anything else. */
bool whole(std::string_view t, uint64_t *value, bool *negative)
{
    bool minus = !t.empty() && t[0] == '-';
    size_t i = minus ? 1 : 0, n = t.size();
    if (i == n || n - i > 20 || (t[i] == '0' && n - i > 1))
        return false;
    uint64_t v = 0;
    for (; i < n; i++) {
        unsigned d = static_cast<unsigned>(t[i] - '0');
        if (d > 9 || (i >= 18 && v > (UINT64_MAX - d) / 10))
            return false;
        v = v * 10 + d;
    }
    if (minus && v > (UINT64_C(1) << 63))
        return false;
    *value = minus ? UINT64_C(0) - v : v;
    *negative = minus && v != 0;
    return true;
}

} // namespace

struct JDoc {
    ondemand::parser parser;
    Pool<char> text;
    Pool<JNode> nodes;
    Pool<uint64_t> ints;
    const char *problem = nullptr;

    bool fail(const char *what)
    {
        if (problem == nullptr)
            problem = what;
        return false;
    }
    bool add(uint8_t type, uint32_t *index)
    {
        if (nodes.n >= UINT32_MAX - 1 || !nodes.reserve(1))
            return fail(NO_MEMORY);
        *index = static_cast<uint32_t>(nodes.n++);
        nodes.data[*index] = JNode{};
        nodes.data[*index].type = type;
        return true;
    }
    template <typename V> bool value(V &v, unsigned depth, uint32_t *index);
    bool object(ondemand::object &o, unsigned depth, uint32_t index);
    bool array(ondemand::array &a, unsigned depth, uint32_t index);
    bool text_value(std::string_view token, uint32_t index, bool is_string);
    bool unpack_ints(const char *begin, uint32_t index, uint64_t count);
};

bool JDoc::text_value(std::string_view token, uint32_t index, bool is_string)
{
    token = trimmed(token);
    if (is_string) {
        if (token.size() < 2 || token.back() != '"')
            return fail("text after a string");
        token = token.substr(1, token.size() - 2);
    } else if (!is_number(token)) {
        return fail("not a number");
    }
    nodes.data[index].text = token.data();
    nodes.data[index].len = token.size();
    return true;
}

bool JDoc::object(ondemand::object &o, unsigned depth, uint32_t index)
{
    uint64_t count = 0;
    for (auto field : o) {
        ondemand::raw_json_string key;
        ondemand::value v;
        if (field.key().get(key) || field.value().get(v))
            return fail("not an object member");
        uint32_t child;
        if (!value(v, depth, &child))
            return false;
        const char *begin = key.raw(), *end = begin;
        while (*end != '"')
            end += *end == '\\' ? 2 : 1;
        nodes.data[child].key = begin;
        nodes.data[child].key_len = static_cast<uint32_t>(end - begin);
        count++;
    }
    nodes.data[index].len = count;
    return true;
}

/* An array that began with whole numbers and went on otherwise: the first `count` become nodes. */
bool JDoc::unpack_ints(const char *begin, uint32_t index, uint64_t count)
{
    const char *p = begin;
    nodes.data[index].type = JDOC_ARRAY;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t child;
        while (*p != '-' && !is_digit(*p))
            p++;
        const char *start = p;
        while (*p == '-' || is_digit(*p))
            p++;
        if (!add(JDOC_NUMBER, &child))
            return false;
        nodes.data[child].text = start;
        nodes.data[child].len = static_cast<uint64_t>(p - start);
        nodes.data[child].next = child + 1;
    }
    return true;
}

bool JDoc::array(ondemand::array &a, unsigned depth, uint32_t index)
{
    uint64_t count = 0, first = ints.n;
    bool packed = true, negative = false;
    const char *begin = nullptr;
    for (auto element : a) {
        ondemand::value v;
        if (element.get(v))
            return fail("not an array element");
        uint64_t number;
        bool minus;
        std::string_view token = packed ? trimmed(v.raw_json_token()) : std::string_view();
        if (count == 0)
            begin = token.data();
        if (packed && whole(token, &number, &minus)) {
            if (!ints.reserve(1))
                return fail(NO_MEMORY);
            ints.data[ints.n++] = number;
            negative |= minus;
            count++;
            continue;
        }
        if (packed && !unpack_ints(begin, index, count))
            return false;
        packed = false;
        uint32_t child;
        if (!value(v, depth, &child))
            return false;
        count++;
    }
    packed = packed && count > 0;
    nodes.data[index].type = packed ? JDOC_INTS : JDOC_ARRAY;
    nodes.data[index].len = count;
    nodes.data[index].ints = first;
    nodes.data[index].negative = negative;
    return true;
}

template <typename V> bool JDoc::value(V &v, unsigned depth, uint32_t *index)
{
    ondemand::json_type type;
    if (depth >= JDOC_DEPTH)
        return fail("nested too deeply");
    if (v.type().get(type))
        return fail("not a JSON value");
    if (!add(JDOC_NULL, index))
        return false;
    bool good = true;
    switch (type) {
    case ondemand::json_type::object: {
        ondemand::object o;
        nodes.data[*index].type = JDOC_OBJECT;
        good = v.get_object().get(o) == SUCCESS ? object(o, depth + 1, *index)
                                               : fail("not an object");
        break;
    }
    case ondemand::json_type::array: {
        ondemand::array a;
        good = v.get_array().get(a) == SUCCESS ? array(a, depth + 1, *index) : fail("not an array");
        break;
    }
    case ondemand::json_type::string:
    case ondemand::json_type::number: {
        bool is_string = type == ondemand::json_type::string;
        std::string_view token;
        nodes.data[*index].type = is_string ? JDOC_STRING : JDOC_NUMBER;
        good = simdjson_result<std::string_view>(v.raw_json_token()).get(token) == SUCCESS
                   ? text_value(token, *index, is_string)
                   : fail("not a JSON value");
        break;
    }
    case ondemand::json_type::boolean: {
        bool b = false;
        good = v.get_bool().get(b) == SUCCESS || fail("neither true nor false");
        nodes.data[*index].type = b ? JDOC_TRUE : JDOC_FALSE;
        break;
    }
    case ondemand::json_type::null: {
        bool null = false;
        good = (simdjson_result<bool>(v.is_null()).get(null) == SUCCESS && null) || fail("not null");
        break;
    }
    }
    nodes.data[*index].next = static_cast<uint32_t>(nodes.n);
    return good;
}

extern "C" JDoc *jdoc_new(void)
{
    return new (std::nothrow) JDoc;
}

extern "C" void jdoc_free(JDoc *self)
{
    delete self;
}

extern "C" const char *jdoc_parse(JDoc *self, const char *text, size_t len, size_t *ret_offset)
{
    *ret_offset = 0;
    self->nodes.n = self->ints.n = self->text.n = 0;
    self->problem = nullptr;
    if (len >= UINT32_MAX - SIMDJSON_PADDING || !self->text.reserve(len + SIMDJSON_PADDING))
        return NO_MEMORY;
    if (len > 0)
        std::memcpy(self->text.data, text, len);
    std::memset(self->text.data + len, 0, SIMDJSON_PADDING);
    ondemand::document document;
    auto error = self->parser.iterate(self->text.data, len, len + SIMDJSON_PADDING).get(document);
    if (error == EMPTY)
        return "empty";
    if (error == UTF8_ERROR)
        return "not UTF-8";
    if (error == UNCLOSED_STRING)
        return "a string without an end";
    if (error)
        return error == CAPACITY || error == MEMALLOC ? NO_MEMORY : "not JSON";
    uint32_t root;
    bool good = self->value(document, 0, &root);
    const char *where = nullptr;
    if (document.current_location().get(where) == SUCCESS && where >= self->text.data &&
        where <= self->text.data + len)
        *ret_offset = static_cast<size_t>(where - self->text.data);
    if (!good)
        return self->problem;
    if (self->nodes.data[root].type < JDOC_INTS)
        return "neither an object nor an array";
    if (document.current_location().error() != OUT_OF_BOUNDS)
        return "text after the end of the value";
    return nullptr;
}

extern "C" const JNode *jdoc_nodes(const JDoc *self, uint32_t *ret_n)
{
    *ret_n = static_cast<uint32_t>(self->nodes.n);
    return self->nodes.data;
}

extern "C" const uint64_t *jdoc_ints(const JDoc *self)
{
    return self->ints.data;
}

extern "C" const char *jdoc_text(const JDoc *self)
{
    return self->text.data;
}
