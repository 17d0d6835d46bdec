"""Elements of a page."""

import doctest

from undertow.view import html
from undertow.view.html import element, table


def test_text_is_escaped_and_elements_are_not():
    assert element("p", "a < b", element("b", '"'), class_="soft") == '<p class="soft">a &lt; b<b>&quot;</b></p>'
    assert element("i", title='"><script>') == '<i title="&quot;&gt;&lt;script&gt;"></i>'
    assert element("td", "x", class_=None) == "<td>x</td>"


def test_tables_mark_their_numbers():
    assert table(["a", "n"], [["<", "1"]], ["n"]) == (
        '<table><thead><tr><th>a</th><th class="number">n</th></tr></thead>'
        '<tbody><tr><td>&lt;</td><td class="number">1</td></tr></tbody></table>'
    )


def test_examples():
    assert doctest.testmod(html).failed == 0
