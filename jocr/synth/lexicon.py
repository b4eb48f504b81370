"""English words that pages are written with, and which of them belong to which split.

The lists were written for this project from common knowledge. A content word belongs to the held-out splits if a
checksum of its base form says so (about one in five), else to training; function words are shared by both.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

NOUNS = """
account acid actor address adult advice agent agreement air airport album animal answer apple area argument arm army
arrow article artist aspect atom attempt attic author autumn baby bag baker balance ball bank bar barn barrel basin
basket battery battle beach beam bear bed bee bell belt bench benefit bicycle bill bird birth biscuit blade blanket
block blood board boat body bone book border bottle bottom bowl box boy brain branch bread breath brick bridge brother
brush bucket budget building bundle bus business butcher butter button cabin cable cake calendar camera camp canal
candle canvas captain carbon card cargo carpet carriage castle cathedral cattle cause cave ceiling cell center century
chain chair chamber chance channel chapter charge chart cheese chemist chest child church circle citizen city claim
class clay client climate clinic clock cloth cloud coach coal coast coat coffee coin collar college colony color
column comment committee company compass concert condition contract copper copy corn corner cost cotton council
country county couple courage course court cousin cover cow crack craft cream creature credit crew crime crop cross
crowd crown culture cup curtain curve customer dairy damage dance danger date daughter dawn deal debate debt decade
decision degree demand dentist desert design desk detail device diagram diary dinner direction dish distance district
doctor document dog dollar donkey door dozen draft dream dress drink driver drum duck dust duty eagle ear earth east
edge editor effect effort egg election element elephant energy engine engineer entrance error essay estate evening
event evidence exam example exchange exercise exhibit expert eye face factor factory failure family farm farmer father
fault feather feature fee fence ferry field figure file film finger fire fish flag flame flight flood floor flour
flower fluid fog food foot force forest fork form fortune foundation fountain fox frame friend frog front frost fruit
fuel function fund furniture future gallery game garden gas gate gear gift girl glass glove goal goat gold government
governor grain grammar grape graph grass ground group guard guest guide gun habit hair hall hammer hand harbor harvest
hat head health heart heat height helmet hill history hole holiday home honey hook horse hospital host hotel hour
house hunter hut ice idea image income industry infant ink insect institute interest interval invention iron island
item jacket jar jewel job journal journey judge juice jungle jury kettle key king kitchen kite knee knife knight knot
label labor ladder lady lake lamp language laundry law lawyer layer leader leaf league leather lecture leg lemon
length lens lesson letter level library license lid life light limit line lion list liquid load loan lock log lord
loss machine magazine manager map marble margin market mask mass master match matter meadow meal measure meat medicine
meeting member memory merchant message metal method midnight mile milk mill mind mine minister minute mirror mission
mistake mixture model moment money monkey month moon morning mother motor mountain mouse mouth movement mud muscle
museum music nail name nation nature neck needle neighbor nerve nest network newspaper night noise noon north nose
note notice novel number nurse oak object ocean office officer oil onion opera opinion orange orbit orchard order
organ origin outcome oven owner ox package page pain paint palace pan panel paper parade parcel parent park parliament
partner party passage passenger path patient pattern payment peace peak pear pen pencil people pepper percent period
permit person phone photo phrase piano picture piece pig pigeon pillow pilot pin pipe place plan plane planet plant
plate platform player pocket poem poet point poison pole police policy pond pool port portion position post pot potato
powder power prayer present president price priest prince prison prize problem process product professor profit
program project proof property protein province pump pupil purpose quality quarter queen question rabbit race radio
rail rain range rate ratio reader reason receipt recipe record region relation remark rent report republic request
research reserve resort result review reward rhythm rice rifle ring river road robot rock role roof room root rope
rose route row rule runner sailor salad salt sample sand sauce scale scene schedule scheme scholar school science
scientist score screen sea season seat secret sector seed sentence servant service session shade shadow shape share
sheep sheet shelf shell shelter ship shirt shoe shop shore shoulder side sign signal silk silver singer sister site
size skill skin sky slope smoke snake snow soap society soil soldier solution son song soul sound soup source south
space spider spoon spring square stable stage stair stamp standard star state station statue steam steel stem step
stick stone store storm story stove stranger straw stream street strength string student study style subject success
sugar suit summer sun supper supply surface surgeon survey sweater symbol system table tail tailor talent tank tape
target task tax tea teacher team temple tent term test text theater theory thief thing thread throat ticket tide tiger
timber time title toast tobacco tool tooth topic total towel tower town track trade tradition traffic train treasure
treaty tree trial tribe trick trip troop trouble truck trumpet trunk truth tube tunnel turkey twin type uncle union
unit universe valley value van vegetable vehicle verb version vessel victim victory view village violin visitor voice
volume voyage wagon wall war warehouse watch water wave wax wealth weapon weather wedding week weight well west whale
wheat wheel whistle widow width wife wind window wine wing winter wire witness wolf woman wood wool word worker
workshop world writer yard year zone
"""
VERBS = """
accept achieve act add admit adopt agree allow announce answer appear apply approve argue arrange arrive ask assume
attach attack attend avoid bake bless boil borrow bounce build:built buy:bought call carry catch:caught celebrate
change charge check choose:chose claim clean clear climb close collect combine come:came compare complain complete
confirm connect consider contain continue control cook correct cost:cost count cover create cross cut:cut damage dance
decide declare defend deliver demand deny depend describe deserve destroy develop discover discuss divide draw:drew
drift drive:drove drop earn eat:ate employ enjoy enter escape examine exist expand expect explain explore express
extend face fail fall:fell fasten feed:fed feel:felt fight:fought fill find:found finish fix float fold follow force
forget:forgot form gather give:gave grow:grew guard guess guide handle happen hate hear:heard help hide:hid hold:held
hope hunt hurry identify ignore imagine improve include increase inform insist inspect invent invite join jump
keep:kept kick know:knew land last laugh launch lead:led learn leave:left lend:lent lift like limit link listen live
load look lose:lost love make:made manage mark measure meet:met melt mend mention mix move need notice obtain occur
offer open order own paint pass pay:paid perform permit pick place plan plant play point pour praise prefer prepare
press prevent print produce promise protect prove provide publish pull punish push reach read:read realize receive
record reduce refer refuse regret reject release remain remember remove repair repeat replace reply report request
require rescue respect rest return reveal ring:rang rise:rose roll ruin run:ran save say:said search see:saw seem
select sell:sold send:sent separate serve settle shake:shook share shine:shone shout show sing:sang sink:sank sit:sat
sleep:slept slip smell smile solve sort speak:spoke spend:spent spread:spread stand:stood start state stay steal:stole
stop store strike:struck study succeed suffer suggest supply support suppose surprise surround swim:swam take:took
talk taste teach:taught tell:told test thank think:thought throw:threw tie touch trace trade train travel treat trust
try turn understand:understood use visit vote wait wake:woke walk wander want warn wash waste watch wear:wore weigh
win:won wish wonder work worry wrap write:wrote yield
"""
ADJECTIVES = """
able active actual ancient angry annual bad basic beautiful bitter blind blue bold brave brief bright broad broken
brown busy calm careful careless central certain cheap chemical chief civil clever cold common complex cool crazy
cruel curious daily dangerous dark dead dear deep delicate different difficult direct dirty distant double dry due
dull eager early easy eastern elder electric empty entire equal exact extra fair false familiar famous fast fat
favorite fertile final fine firm first flat foreign former free frequent fresh friendly full general gentle glad
golden good grand grateful gray great green guilty happy hard heavy high hollow holy honest hot huge human humble
hungry ideal important inner innocent intense joint junior just keen kind large late lazy legal likely liquid little
local lonely long loose loud low lucky mad main major male mature medical mental mild military minor modern moral
mutual naked narrow national native natural near neat nervous new nice noble normal northern obvious odd official old
open ordinary outer own pale patient perfect plain pleasant poor popular possible practical precious pretty previous
primary private proper proud public pure quick quiet rapid rare raw ready real recent red regular remote rich right
rigid rough round royal rude rural sacred sad safe salty scientific secret secure senior separate serious severe
shallow sharp short shy sick silent similar simple single slight slow small smart smooth social soft solid southern
special steady steep stiff strange strict strong stupid sudden sweet swift tall tender thick thin tight tiny tired
total tough typical ugly unique upper urban useful usual vague vain valid vast violent visible vital warm weak wealthy
western wet white whole wide wild wise wooden wrong yellow young
"""
ADVERBS = """
again almost already always apart away badly barely clearly closely daily early easily exactly fairly finally gladly
hardly hence here instead lately later likely maybe mostly nearly never nicely often once perhaps quickly quietly
rarely really recently sadly seldom shortly slowly sometimes soon still suddenly together today tomorrow twice usually
widely yesterday
"""
NAMES = """
Adams Albert Alice Anderson Anna Arthur Bailey Barbara Bennett Brown Carter Charles Clara Clark Collins Cooper Daniel
David Davis Diana Edward Eleanor Elizabeth Emma Evans Fisher Foster Frank George Grace Graham Green Hannah Harris
Harvey Helen Henry Howard Hughes Hunter Isabel Jackson James Johnson Joseph Julia Kelly King Laura Lewis Louis Lucy
Margaret Martha Martin Mary Mason Michael Miller Mitchell Moore Morgan Morris Nelson Nicholas Oliver Parker Patrick
Paul Peter Philip Phillips Rachel Richard Roberts Robinson Rogers Rose Russell Samuel Sarah Scott Shaw Simon Smith
Sophia Stephen Stewart Susan Taylor Thomas Thompson Turner Victor Walker Walter Ward Watson White William Wilson
Wright Young François Müller José Núñez Søren Zoë Renée Andrés Håkan Jürgen
"""
PLACES = """
Africa Alaska America Amsterdam Asia Athens Austria Baltimore Berlin Boston Bristol Cambridge Canada Chicago China
Cologne Cuba Dallas Denmark Denver Dublin Egypt England Europe Finland Florence France Geneva Germany Greece Hamburg
Hungary India Ireland Italy Japan Kansas Lisbon London Madrid Mexico Milan Montreal Moscow Munich Naples Norway Ohio
Oslo Oxford Paris Persia Peru Poland Portugal Prague Rome Russia Scotland Seattle Spain Sweden Sydney Texas Tokyo
Toronto Turin Utah Venice Vienna Virginia Warsaw Washington York Zurich Genève Málaga Zürich Orléans Köln Québec
"""
FUNCTION = """
a about above across after all along also among an and another any are around as at be been before behind being below
beside between both but by can could did do does each either every few for from had has have he her his how if in into
is it its just less many may might more most much must near no nor not of off on once one only or other our out over
own she should since so some such than that the their them then there these they this those though through to too two
three four five six ten toward under until up upon very was we were what when where which while who whose why will
with within without would yet you your
"""
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


@dataclass(frozen=True)
class Lexicon:
    """The content words of one split; ``verbs`` are (base, third person, past, -ing) forms."""

    nouns: tuple[str, ...]
    plurals: tuple[str, ...]
    verbs: tuple[tuple[str, str, str, str], ...]
    adjectives: tuple[str, ...]
    adverbs: tuple[str, ...]
    names: tuple[str, ...]
    places: tuple[str, ...]

    words: tuple[str, ...] = field(init=False)  # every surface form

    def __post_init__(self) -> None:
        forms = tuple(f for verb in self.verbs for f in verb)
        words = (*self.nouns, *self.plurals, *forms, *self.adjectives, *self.adverbs, *self.names, *self.places)
        object.__setattr__(self, "words", words)


def held_out(word: str) -> bool:
    """Whether a base form (or an invented word) belongs to the held-out splits."""
    return zlib.crc32(word.lower().encode()) % 5 == 0


_IRREGULAR = {
    "child": "children", "foot": "feet", "tooth": "teeth", "mouse": "mice", "woman": "women", "wife": "wives",
    "knife": "knives", "leaf": "leaves", "life": "lives", "shelf": "shelves", "wolf": "wolves", "thief": "thieves",
    "potato": "potatoes", "sheep": "sheep", "fish": "fish", "people": "peoples", "person": "persons",
}  # fmt: skip


_STRESSED_LAST = {"admit", "occur", "permit", "prefer", "refer", "regret"}


def plural(noun: str) -> str:
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def adverb(adjective: str) -> str:
    """The form in -ly."""
    if adjective.endswith("ic"):
        return adjective + "ally"
    if adjective.endswith("le") and adjective[-3] not in "aeiou":
        return adjective[:-1] + "y"
    stem = adjective[:-1] + "i" if adjective.endswith("y") else adjective
    return stem + ("y" if stem.endswith("ll") else "ly")


def _doubled(verb: str) -> str:
    if verb in _STRESSED_LAST:
        return verb + verb[-1]
    one_vowel = sum(c in "aeiouy" for c in verb) == 1
    return verb + verb[-1] if one_vowel and verb[-1] not in "aeiouwxy" and verb[-2] in "aeiou" else verb


def verb_forms(entry: str) -> tuple[str, str, str, str]:
    """(base, third person, past, -ing) of ``base`` or ``base:past``."""
    base, _, past = entry.partition(":")
    stem = base[:-1] if base.endswith("e") and not base.endswith(("ee", "ie")) else _doubled(base)
    if not past and base[-1] == "y" and base[-2] not in "aeiou":
        past = base[:-1] + "ied"
    elif not past:
        past = base + "d" if base[-1] == "e" else stem + "ed"
    return base, plural(base), past, base[:-2] + "ying" if base.endswith("ie") else stem + "ing"


@cache
def lexicon(split: str) -> Lexicon:
    """The words of a split: "train", "heldout" or "heldout_font" (which shares the held-out words)."""
    if split == "train":
        return _build(lambda w: not held_out(w), frozenset())
    taken = frozenset(w.lower() for w in lexicon("train").words) | frozenset(FUNCTION.split())
    return _build(held_out, taken)


def _build(mine: Callable[[str], bool], taken: frozenset[str]) -> Lexicon:
    def pick(text: str) -> tuple[str, ...]:
        return tuple(w for w in text.split() if mine(w) and w.lower() not in taken)

    nouns = tuple(n for n in pick(NOUNS) if plural(n) not in taken)
    verbs = tuple(verb_forms(v) for v in VERBS.split() if mine(v.partition(":")[0]))
    verbs = tuple(v for v in verbs if not taken.intersection(v))
    plurals = tuple(plural(n) for n in nouns)
    adjectives = pick(ADJECTIVES)
    derived = (adverb(a) for a in adjectives if len(a) > 4 and not a.endswith("ly"))
    adverbs = pick(ADVERBS) + tuple(a for a in derived if a not in taken)
    return Lexicon(nouns, plurals, verbs, adjectives, adverbs, pick(NAMES), pick(PLACES))
