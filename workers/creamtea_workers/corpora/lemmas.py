"""A crude test whether a word is a form of a lemma: enough to find an idiom's words in a sentence that is
known to hold them, not a lemmatiser. All strings are lower case; alternatives of a lemma stand beside `|`.

- *English*: the regular endings, and irregular verbs from a table.
- *German*: umlauts and ß are folded; common endings, `ge-` and `zu` of participles and infinitives, prefixes
  of verbs; strong verbs and pronouns from a table. `die` stands for every article, `sein` for the verb and
  for every possessive, as in IdiomTranslationDS. Of a separable verb whose prefix stands later in the
  sentence, the verb's form alone is taken.
- *Other languages*: the first four letters, or all of a shorter lemma, and at most four letters more than it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from creamtea_workers.corpora.moses import primary

_FOLD = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _table(text: str) -> dict[str, frozenset[str]]:
    """A line: a lemma, then forms; a lemma may have several lines."""
    table: dict[str, frozenset[str]] = {}
    for lemma, *forms in (line.split() for line in text.strip().split("\n")):
        table[lemma] = table.get(lemma, frozenset()) | frozenset(forms)
    return table


def places_of(lemma: str, words: Sequence[str], language: str) -> list[int]:
    """Where the words, in lower case, are forms of the lemma. `language` is a code such as `de`."""
    is_form = _TESTS.get(primary(language), _generic)
    alternatives = [form for form in lemma.split("|") if form] or [lemma]
    separable = _separable(alternatives) if is_form is _german else []
    return [
        place
        for place, word in enumerate(words)
        if any(word == form or is_form(form, word) for form in alternatives)
        or any(_german(base, word) and prefix in words[place + 1 :] for prefix, base in separable)
    ]


# ---------------------------------------------------------------- English

# forms that the endings of `_english` do not give
_ENGLISH = _table(
    """
be am is are was were been being 's 're 'm
beat beaten
begin began begun
bite bit bitten
blow blew blown
break broke broken
bring brought
build built
burn burnt
buy bought
catch caught
come came
do did done does
draw drew drawn
drink drank drunk
drive drove driven
eat ate eaten
fall fell fallen
feel felt
fight fought
find found
fly flew flown flies
get got gotten
give gave given
go went gone goes
hang hung
have has had having 've 'd
hear heard
hold held
keep kept
know knew known
lead led
leave left
lose lost
make made
mean meant
meet met
pay paid
ride rode ridden
ring rang rung
rise rose risen
run ran
say said
see saw seen
sell sold
send sent
shake shook shaken
shoot shot
show shown
sing sang sung
sink sank sunk
sit sat
sleep slept
speak spoke spoken
spend spent
spoil spoilt spoiled
stand stood
steal stole stolen
strike struck
take took taken
teach taught
tell told
think thought
throw threw thrown
wear wore worn
win won
write wrote written
a an
your my his her its our their
yourself myself himself herself itself ourselves themselves yourselves
"""
)


def _english(lemma: str, word: str) -> bool:
    if word in _ENGLISH.get(lemma, ()):
        return True
    if word in (lemma + "s", lemma + "es"):
        return True
    stems = [lemma, lemma.removesuffix("e"), lemma + lemma[-1]]  # pass-ing, tak-ing, sell-ing, begin-n-ing
    if lemma.endswith("y"):
        stems.append(lemma[:-1] + "i")  # carri-ed, carri-es
    return (
        any(word in (stem + "ing", stem + "ed") for stem in stems) or word == lemma.removesuffix("y") + "ies"
    )


# ---------------------------------------------------------------- German

# words that take no endings: all their forms
_GERMAN_CLOSED = _table(
    """
die der das den dem des denen deren dessen
eine ein einen einem einer eines
kein keine keinen keinem keiner keines
sein bin bist ist sind seid sei seien war warst waren wart wäre wären gewesen
sein seine seinen seinem seiner seines mein meine meinen meinem meiner meines dein deine deinen
sein deinem deiner deines ihr ihre ihren ihrem ihrer ihres
sein unser unsere unseren unserem unserer unseres euer euere eueren euerem euerer eueres unsre
sein unsren unsrem unsrer unsres eure euren eurem eurer eures
ich mich mir mein
sie ihnen ihr ihre ihren ihrem ihrer
sich mich mir dich dir uns euch
es 's
in im ins
an am ans
zu zum zur
von vom
bei beim
auf aufs
um ums
"""
)
# of verbs and adjectives further stems, which take the endings, too
_GERMAN = _table(
    """
haben hab hast hat hatte hätte gehabt
werden wird wirst wurde würde worden geworden
können kann konnte könnte gekonnt
müssen muss musste müsste
sollen soll
wollen will
dürfen darf durfte
beißen biss gebissen
bieten bot geboten
binden band gebunden
bleiben blieb geblieben
brechen brich brach gebrochen
bringen brachte gebracht
denken dachte gedacht
essen iss ass gegessen
fahren fuhr
fallen fiel
finden fand gefunden
fliegen flog geflogen
geben gib gab
gehen ging gegangen
gießen goss gegossen
greifen griff gegriffen
halten hielt
hängen hing gehangen
heben hob gehoben
kommen kam
kriechen kroch gekrochen
lassen liess
laufen lief
legen leg
leiden litt gelitten
liegen lag gelegen
nehmen nimm nahm genommen
raten riet
reißen riss gerissen
rufen rief
scheren schor geschor
schieben schob geschoben
schlagen schlug
schließen schloss geschlossen
schneiden schnitt geschnitten
schreiben schrieb geschrieben
schreien schrie geschrien
schwimmen schwamm geschwommen
sehen sieh sah
sitzen sass gesessen
sprechen sprich sprach gesprochen
springen sprang gesprungen
stehen stand gestanden
steigen stieg gestiegen
sterben stirb starb gestorben
tragen trug
treffen triff traf getroffen
treiben trieb getrieben
treten tritt trat getreten
trinken trank getrunken
tun tat getan
verlieren verlor
wachsen wuchs
werfen wirf warf geworfen
wissen weiss wusste gewusst
ziehen zog gezogen
gut besser best
sauer saur
hoch hohe höher höchst
viel mehr meist
""".translate(_FOLD)
)
_ENDINGS = frozenset(
    _words(
        """
    e em en er es est et n s st t te tem ten ter tes test tet end ende enden ender endes ens
    ern ere eren erer eres erem este esten ester estes ste sten ster stes nen ne
        """
    )
) | {""}
_SEPARABLE = _words(
    """
    zusammen zurück hinter heraus hinaus herein hinein weiter wieder unter durch statt stand nach fest fort
    frei los mit vor weg auf aus bei ein hin her ab an zu um
    """
)
_PREFIXES = tuple(
    prefix.translate(_FOLD)
    for prefix in (*_SEPARABLE, "ver", "be", "ge", "er", "ent", "zer", "über", "wider")
)


@cache
def _german(lemma: str, word: str) -> bool:
    if lemma in _GERMAN_CLOSED:
        return word in _GERMAN_CLOSED[lemma]
    lemma, word = lemma.translate(_FOLD), word.translate(_FOLD)
    if _inflected(lemma, word) or _inflected(lemma, word.removeprefix("ge")):
        return True
    for prefix in _PREFIXES:
        base, rest = lemma.removeprefix(prefix), word.removeprefix(prefix)
        if base != lemma and rest != word and len(base) > 3 and len(rest) > 2:
            # annehmen: an-nimmt, an-zu-nehmen, an-genommen; vergehen: ver-(ge)gangen
            forms = (rest, rest.removeprefix("ge"), rest.removeprefix("zu"), "ge" + rest)
            if any(_inflected(base, form) for form in forms):
                return True
    return False


def _separable(lemmas: Sequence[str]) -> list[tuple[str, str]]:
    """How the lemmas may be prefix and verb, as in: nimmt … an."""
    return [
        (prefix, lemma.removeprefix(prefix))
        for lemma in lemmas
        for prefix in _SEPARABLE
        if lemma.startswith(prefix) and len(lemma) > len(prefix) + 3
    ]


def _inflected(lemma: str, word: str) -> bool:
    """Both folded: whether the word is a stem of the lemma with an ending."""
    stems = {lemma, *_GERMAN.get(lemma, ())}
    stems |= {lemma.removesuffix(ending) for ending in ("en", "n", "e") if len(lemma) > len(ending) + 2}
    return any(word.startswith(stem) and word[len(stem) :] in _ENDINGS for stem in stems)


# ---------------------------------------------------------------- other languages


def _generic(lemma: str, word: str) -> bool:
    return word.startswith(lemma[:4]) and abs(len(word) - len(lemma)) <= 4


_TESTS: dict[str, Callable[[str, str], bool]] = {"en": _english, "de": _german}
