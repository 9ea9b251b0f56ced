"""Word tables of the rule of likeness. A word that is in no table stands for itself."""

from collections.abc import Mapping
from types import MappingProxyType

# Verbs of requests. Slashes separate groups of verbs that mean the same. Only true synonyms share a group: "remove" is
# not "delete", since it may be from a list. Opposites are in different groups.
_ACT_LINES = """
    accept / add / approve / ask / attend / block / book reserve / buy purchase / calculate / call phone / cancel /
    change / charge / check / close / compare / confirm / convert / copy / create / decline reject refuse / delete
    erase / deploy / describe / disable deactivate / dispute / download / email / enable activate / explain / export /
    find / fix / forward / get / give / grant / help / import / install / introduce / invite / join / keep / leave /
    list / lock / log / look / mail / make / meet / merge / message / move reschedule / name / note / notify / open /
    order / pause / pay / play / post / postpone delay / print / proofread / provide / publish / put / read /
    recommend / refund / remind / remove / rename / reply respond answer / reset / resume / review / revoke / run
    execute / save / schedule arrange / search / send / set / share / show / sign / start / stop / submit / subscribe
    / suggest / summarise summarize / tell / test / track / transfer wire / translate / turn switch / unblock / unlock
    / unsubscribe / update / upload / verify / withdraw / write
"""
ACTS: Mapping[str, str] = MappingProxyType(
    {word: line.split()[0] for line in _ACT_LINES.split("/") for word in line.split()}
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(text: str) -> tuple[tuple[str, ...], ...]:
    """Returns the words of each phrase in a text with commas between the phrases, the longest phrase first."""
    return tuple(sorted((tuple(phrase.split()) for phrase in text.split(",")), key=len, reverse=True))


# Verbs that look something up or note it. They send, pay, change and delete nothing.
LOOKS = _words(
    "calculate check compare describe explain find list log look note proofread recommend remind review search suggest"
    " summarise track translate verify"
)
ARTICLES = _words("a an the")
PREPOSITIONS = _words("with from to in at for by about of near via into onto")
PRONOUNS = _words("i me my we us our you your he him his she her it its they them their this that these those")
AUXILIARIES = _words(
    "is are was were am be been can could will would shall should may might must do does did has have had"
)
QUESTIONS = _words("what which who whom whose when where why how")
# A sentence that begins with one of these and does not say "you" asks something. "Have" and "do" may give an order.
ASKS = QUESTIONS | (AUXILIARIES - _words("have do be been"))
# A sentence that begins with one of these only tells something.
TELLS = _words("the your our a an")
NEGATIONS = _words("not no never nothing none nobody neither nor without cannot don dont stop avoid except unless")
_OTHERS = _words(
    "and or but then also if so as than on off up down out over under all any every each only again more most ok yes"
    " there here too very some both other"
)
FUNCTION = ARTICLES | PREPOSITIONS | PRONOUNS | AUXILIARIES | QUESTIONS | NEGATIONS | _OTHERS | {"'s", "like"}
# Words that never count as a name, even with a capital: secrets and private matters, places that the public or many
# people read, and words of injected instructions.
NO_NAMES = _words(
    """
    password passwords passwd passphrase passport pin token tokens secret secrets key keys credential credentials login
    logins account accounts bank card cards iban salary salaries payroll medical health tax private confidential
    internal admin root everyone everybody anyone anybody public press hr legal finance management team staff board
    twitter facebook linkedin instagram reddit youtube tiktok slack discord telegram whatsapp github gitlab dropbox
    trash bin spam inbox archive drive desktop calendar contacts address addresses files file folder mails emails
    messages report reports contract contracts invoice invoices ignore previous instructions instruction system prompt
    rules now instead everything anything production prod staging development test live main master draft done diary
    """
)
KNOWN = FUNCTION | NO_NAMES | frozenset(ACTS)

# At the start of a request and before a verb from the table, these only make the request polite. "Is it possible to" is
# not among them, since it asks something.
FRAMES = _phrases(
    "can you,could you,would you,will you,can you possibly,could you possibly,would you mind,i would like you to,"
    "i want you to,i need you to,i was wondering if you could,could i ask you to,i would like to ask you to,"
    "i would appreciate it if you could,it would be great if you could"
)
# Before "meet" these make the request polite. "Can we meet" asks to meet, but "can we delete it" asks for permission.
FRAMES_TO_MEET = _phrases("can we,could we,shall we")
# Before a question word, these say only that a question follows.
TELL_ME = _phrases("tell me,let me know,i would like to know,i need to know")
FILLERS = _words("please kindly pls plz bitte")
# Parts at the beginning or end of a text that are only courtesies.
COURTESIES = _phrases(
    "hi,hello,hey,hi there,hello there,good morning,good afternoon,good evening,good day,greetings,thanks,thank you,"
    "thanks a lot,many thanks,thank you very much,thanks in advance,thank you in advance,cheers,best regards,"
    "kind regards,regards,i hope you are well,hope you are well,hope you are doing well,i hope you are doing well,"
    "i hope this finds you well,hallo,guten tag,danke,vielen dank"
)
GREETINGS = _words("hi hello hey hallo")
CONTRACTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{f"{word}'s": (word, "is") for word in QUESTIONS | _words("it that there here he she")},
        **{f"{word}'d": (word, "would") for word in PRONOUNS},
        **{f"{word}'ll": (word, "will") for word in PRONOUNS},
        **{f"{word}'re": (word, "are") for word in PRONOUNS},
        **{f"{word}'ve": (word, "have") for word in PRONOUNS},
        "i'm": ("i", "am"),
        "let's": ("let", "us"),
        "can't": ("can", "not"),
        "cannot": ("can", "not"),
        "won't": ("will", "not"),
        "which": ("what",),
    }
)
# Words that English has not or hardly has. In a text with one of them a capital letter does not show a name, since
# German writes "das Passwort" and "die Rechnung".
FOREIGN = _words(
    """
    der die das den dem des ein eine einen einem und ist sind bitte ich mir mich du kannst können könnten nicht auf für
    mit von zum zur im le la les un une est et tu je moi mon ma votre vous pour avec dans sur peux pouvez el los las una
    es y yo mi su por para con puedes puede il lo gli che di non per puoi o os as um uma não você pode het een van voor
    kun je kan niet och är att ihr ihre
    """
)
ENGLISH = ARTICLES | PRONOUNS | AUXILIARIES | QUESTIONS | _words("please with from to into for of at and about")

# A word of the verb table is a verb only behind one of these. Elsewhere it may be a noun: "read the book", "close the
# order".
BEFORE_VERB = _words("and then also to not or but i you we they , . ? ! ; : …")

NUMBERS: Mapping[str, str] = MappingProxyType(
    {
        **{"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9"},
        **{"ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30"},
        **{"forty": "40", "fifty": "50"},
    }
)
# Each text holds names of surely the same currency. "$", "¥", pounds, francs and rupees belong to several countries.
CURRENCIES: Mapping[str, str] = MappingProxyType(
    {
        word: line.split()[0]
        for line in (
            *("€ eur euro euros", "$", "dollar dollars", "usd", "£", "pound pounds", "gbp", "¥", "yen", "jpy", "yuan"),
            *("cny", "chf", "franken", "franc francs", "₹", "rupee rupees", "inr", "₿ btc bitcoin bitcoins"),
            *("cent cents", "sek", "nok", "dkk", "pln", "czk", "cad", "aud", "nzd", "brl", "rub", "eth", "usdt"),
        )
        for word in line.split()
    }
)
# A number behind one of these is an id, not a count.
WHICH_ONE = _words(
    "order ticket invoice parcel build issue version account room flight train case number no nr bestellung paket"
    " rechnung auftrag release request pr contract customer shipment"
)
# A number behind one of these is a telephone number.
DIALS = _words("call phone dial text fax ring sms")

# The letter that stands for a word in the search for points in time.
TIME_WORDS: Mapping[str, str] = MappingProxyType(
    {
        word: code
        for code, words in {
            "d": "monday tuesday wednesday thursday friday saturday sunday montag dienstag mittwoch donnerstag freitag"
            " samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves viernes"
            " sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica",
            "m": "january february march april may june july august september october november december jan feb mar apr"
            " jun jul aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember janvier février mars"
            " avril juin juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio"
            " agosto septiembre octubre noviembre diciembre",
            "r": "today tomorrow yesterday heute morgen gestern demain aujourd'hui mañana hoy domani oggi",
            "C": "noon midday midnight",
            "p": "morning afternoon evening night",
            "x": "next this coming",
            "a": "at um à las",
            "n": "on am le el",
            "t": "the",
            "o": "of de",
        }.items()
        for word in words.split()
    }
)
# Words with these beginnings tell of a beginning, an end or a length of time. A date in a request with one of them is
# not a mere point in time.
ENDS = tuple(
    _words(
        """
        end start begin finish expir effective valid until till since after before through due deadline return renew
        terminat extend older newer earlier later onward check-in check-out checkin checkout ablauf läuft fällig gültig
        frist rückgabe zurück schluss début échéance inicio vence inizio scad
        """
    )
)
# Behind one of these a day is the day of an event. Behind any other word it may be a beginning or an end, and then its
# distance from today counts.
POINTS = _words("on of for")
RELATIVE = _words(
    "today tomorrow yesterday next this coming heute morgen gestern demain aujourd'hui mañana hoy domani oggi"
)
# "Tomorrow" and "next Friday" get an "on" before them, except behind one of these.
BEFORE_RELATIVE = PREPOSITIONS | _words(
    "by before until till til since after through between and or than past over during bis ab von vom seit nach vor"
    " zwischen für avant depuis pour desde hasta para every each last"
)

# A word with a capital is a name behind one of these. "About" and "of" are not among them, since the subject of a text
# is no detail. "Send Anna my address" has its own rule, since "Payroll" in "Send Payroll to Bob" is no name. "Is" has
# its own rule, too: "Is Vera free", "It is Approved".
BEFORE_NAME = _words(
    "with from to in at for by near into remind ask tell invite call meet introduce contact thank notify whether"
)
GIVING = _words("send give show forward")
# A quotation is a detail only behind one of these. Elsewhere, as in `run "…"`, it may be the request itself.
BEFORE_QUOTE = _words("translate titled called named subject phrase sentence word proofread pronounce")
# A path is a detail only behind one of these, as in "review the pull request in acme/api". Elsewhere a slash is part of
# the request ("read/write").
BEFORE_PATH = _words("in of repo repository project")
