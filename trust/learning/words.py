"""The words that the rule of likeness knows. Whatever is in no table stands for itself."""

from collections.abc import Mapping
from types import MappingProxyType

# Verbs of requests, those that mean the same in one line. Only true synonyms: "remove" isn't "delete", it may be from a
# list; opposites are simply in different lines.
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
    """Returns the words of each phrase, of phrases with commas between them, the longest first."""
    return tuple(sorted((tuple(phrase.split()) for phrase in text.split(",")), key=len, reverse=True))


# Acts that look something up, or note it: nothing goes out, is paid, changed or deleted.
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
# A sentence that begins so, and doesn't say "you", asks; "have" and "do" may give an order.
ASKS = QUESTIONS | (AUXILIARIES - _words("have do be been"))
# What a sentence that only tells something begins with.
TELLS = _words("the your our a an")
NEGATIONS = _words("not no never nothing none nobody neither nor without cannot don dont stop avoid except unless")
_OTHERS = _words(
    "and or but then also if so as than on off up down out over under all any every each only again more most ok yes"
    " there here too very some both other"
)
FUNCTION = ARTICLES | PREPOSITIONS | PRONOUNS | AUXILIARIES | QUESTIONS | NEGATIONS | _OTHERS | {"'s", "like"}
# What is never taken for somebody's name, however it is written: what must not be learned by another name, where a
# text goes that the public or many people read, and the words that injected instructions are made of.
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

# At the start of a request these only make it polite, and only before a verb from the table. Not "is it possible to":
# that asks.
FRAMES = _phrases(
    "can you,could you,would you,will you,can you possibly,could you possibly,would you mind,i would like you to,"
    "i want you to,i need you to,i was wondering if you could,could i ask you to,i would like to ask you to,"
    "i would appreciate it if you could,it would be great if you could"
)
# "Can we meet" is the request to meet; "can we delete it" asks whether that is allowed.
FRAMES_TO_MEET = _phrases("can we,could we,shall we")
# Before a question word, these say only that it is a question.
TELL_ME = _phrases("tell me,let me know,i would like to know,i need to know")
FILLERS = _words("please kindly pls plz bitte")
# Whole parts of a text, at its beginning or end, that say nothing.
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
# Words that English doesn't have, or nearly not. Beside one of them a capital letter says nothing about names: German
# writes "das Passwort" and "die Rechnung".
FOREIGN = _words(
    """
    der die das den dem des ein eine einen einem und ist sind bitte ich mir mich du kannst können könnten nicht auf für
    mit von zum zur im le la les un une est et tu je moi mon ma votre vous pour avec dans sur peux pouvez el los las una
    es y yo mi su por para con puedes puede il lo gli che di non per puoi o os as um uma não você pode het een van voor
    kun je kan niet och är att ihr ihre
    """
)
ENGLISH = ARTICLES | PRONOUNS | AUXILIARIES | QUESTIONS | _words("please with from to into for of at and about")

# A verb of the table may be a noun behind other words: "read the book", "close the order".
BEFORE_VERB = _words("and then also to not or but i you we they , . ? ! ; : …")

NUMBERS: Mapping[str, str] = MappingProxyType(
    {
        **{"two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9"},
        **{"ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30"},
        **{"forty": "40", "fifty": "50"},
    }
)
# Those of one line are the same money beyond doubt: "$", "¥", pounds, francs and rupees are those of many countries.
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
# A number behind these says which one, not how many.
WHICH_ONE = _words(
    "order ticket invoice parcel build issue version account room flight train case number no nr bestellung paket"
    " rechnung auftrag release request pr contract customer shipment"
)
# And behind these, whom to call.
DIALS = _words("call phone dial text fax ring sms")

# Which letter stands for a word where times are looked for.
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
# Words that begin so tell of a beginning, an end or how long: no date beside one of them is a mere point in time.
ENDS = tuple(
    _words(
        """
        end start begin finish expir effective valid until till since after before through due deadline return renew
        terminat extend older newer earlier later onward check-in check-out checkin checkout ablauf läuft fällig gültig
        frist rückgabe zurück schluss début échéance inicio vence inizio scad
        """
    )
)
# Behind these a day is when something is. Behind any other word it may be where something begins or ends, and how far
# away it is counts.
POINTS = _words("on of for")
RELATIVE = _words(
    "today tomorrow yesterday next this coming heute morgen gestern demain aujourd'hui mañana hoy domani oggi"
)
# Before "tomorrow" and "next Friday" stands an "on" that isn't written, but for behind these.
BEFORE_RELATIVE = PREPOSITIONS | _words(
    "by before until till til since after through between and or than past over during bis ab von vom seit nach vor"
    " zwischen für avant depuis pour desde hasta para every each last"
)

# What a name stands behind. Not behind "about" and "of": what a text is about is no detail of it. "Send Anna my
# address" has its own rule, for in "Send Payroll to Bob" it isn't one, and "is" too: "Is Vera free", "It is Approved".
BEFORE_NAME = _words(
    "with from to in at for by near into remind ask tell invite call meet introduce contact thank notify whether"
)
GIVING = _words("send give show forward")
# A quotation is a detail behind these only: elsewhere, as in `run "…"`, it may be the request itself.
BEFORE_QUOTE = _words("translate titled called named subject phrase sentence word proofread pronounce")
# "review the pull request in acme/api"; elsewhere a slash is part of the request ("read/write").
BEFORE_PATH = _words("in of repo repository project")
