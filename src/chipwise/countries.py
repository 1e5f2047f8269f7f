"""Countries and groups of countries as people write them, held as ISO 3166 alpha-3 codes or group names.

"DE", "deu" and "Germany" all become DEU. EU and EEA are the member states of 2020 and later; a continent is a group too. Names
and alpha-2 codes follow the public-domain list of the tz database, and all 249 alpha-3 codes agree with the public table
lukes/ISO-3166-Countries-with-Regional-Codes; no position on borders is meant.
"""

from __future__ import annotations

from functools import cache

from chipwise.spelling import fold

_TABLE = """
AD AND Andorra; AE ARE United Arab Emirates; AF AFG Afghanistan; AG ATG Antigua & Barbuda; AI AIA Anguilla; AL ALB Albania;
AM ARM Armenia; AO AGO Angola; AQ ATA Antarctica; AR ARG Argentina; AS ASM Samoa (American); AT AUT Austria;
AU AUS Australia; AW ABW Aruba; AX ALA Åland Islands; AZ AZE Azerbaijan; BA BIH Bosnia & Herzegovina; BB BRB Barbados;
BD BGD Bangladesh; BE BEL Belgium; BF BFA Burkina Faso; BG BGR Bulgaria; BH BHR Bahrain; BI BDI Burundi; BJ BEN Benin;
BL BLM St Barthelemy; BM BMU Bermuda; BN BRN Brunei; BO BOL Bolivia; BQ BES Caribbean NL; BR BRA Brazil; BS BHS Bahamas;
BT BTN Bhutan; BV BVT Bouvet Island; BW BWA Botswana; BY BLR Belarus; BZ BLZ Belize; CA CAN Canada;
CC CCK Cocos (Keeling) Islands; CD COD Congo (Dem. Rep.); CF CAF Central African Rep.; CG COG Congo (Rep.);
CH CHE Switzerland; CI CIV Côte d'Ivoire; CK COK Cook Islands; CL CHL Chile; CM CMR Cameroon; CN CHN China; CO COL Colombia;
CR CRI Costa Rica; CU CUB Cuba; CV CPV Cape Verde; CW CUW Curaçao; CX CXR Christmas Island; CY CYP Cyprus; CZ CZE Czechia;
DE DEU Germany; DJ DJI Djibouti; DK DNK Denmark; DM DMA Dominica; DO DOM Dominican Republic; DZ DZA Algeria; EC ECU Ecuador;
EE EST Estonia; EG EGY Egypt; EH ESH Western Sahara; ER ERI Eritrea; ES ESP Spain; ET ETH Ethiopia; FI FIN Finland;
FJ FJI Fiji; FK FLK Falkland Islands; FM FSM Micronesia; FO FRO Faroe Islands; FR FRA France; GA GAB Gabon;
GB GBR United Kingdom; GD GRD Grenada; GE GEO Georgia; GF GUF French Guiana; GG GGY Guernsey; GH GHA Ghana; GI GIB Gibraltar;
GL GRL Greenland; GM GMB Gambia; GN GIN Guinea; GP GLP Guadeloupe; GQ GNQ Equatorial Guinea; GR GRC Greece;
GS SGS South Georgia & the South Sandwich Islands; GT GTM Guatemala; GU GUM Guam; GW GNB Guinea-Bissau; GY GUY Guyana;
HK HKG Hong Kong; HM HMD Heard Island & McDonald Islands; HN HND Honduras; HR HRV Croatia; HT HTI Haiti; HU HUN Hungary;
ID IDN Indonesia; IE IRL Ireland; IL ISR Israel; IM IMN Isle of Man; IN IND India; IO IOT British Indian Ocean Territory;
IQ IRQ Iraq; IR IRN Iran; IS ISL Iceland; IT ITA Italy; JE JEY Jersey; JM JAM Jamaica; JO JOR Jordan; JP JPN Japan;
KE KEN Kenya; KG KGZ Kyrgyzstan; KH KHM Cambodia; KI KIR Kiribati; KM COM Comoros; KN KNA St Kitts & Nevis;
KP PRK North Korea; KR KOR South Korea; KW KWT Kuwait; KY CYM Cayman Islands; KZ KAZ Kazakhstan; LA LAO Laos; LB LBN Lebanon;
LC LCA St Lucia; LI LIE Liechtenstein; LK LKA Sri Lanka; LR LBR Liberia; LS LSO Lesotho; LT LTU Lithuania; LU LUX Luxembourg;
LV LVA Latvia; LY LBY Libya; MA MAR Morocco; MC MCO Monaco; MD MDA Moldova; ME MNE Montenegro; MF MAF St Martin (French);
MG MDG Madagascar; MH MHL Marshall Islands; MK MKD North Macedonia; ML MLI Mali; MM MMR Myanmar (Burma); MN MNG Mongolia;
MO MAC Macau; MP MNP Northern Mariana Islands; MQ MTQ Martinique; MR MRT Mauritania; MS MSR Montserrat; MT MLT Malta;
MU MUS Mauritius; MV MDV Maldives; MW MWI Malawi; MX MEX Mexico; MY MYS Malaysia; MZ MOZ Mozambique; NA NAM Namibia;
NC NCL New Caledonia; NE NER Niger; NF NFK Norfolk Island; NG NGA Nigeria; NI NIC Nicaragua; NL NLD Netherlands;
NO NOR Norway; NP NPL Nepal; NR NRU Nauru; NU NIU Niue; NZ NZL New Zealand; OM OMN Oman; PA PAN Panama; PE PER Peru;
PF PYF French Polynesia; PG PNG Papua New Guinea; PH PHL Philippines; PK PAK Pakistan; PL POL Poland;
PM SPM St Pierre & Miquelon; PN PCN Pitcairn; PR PRI Puerto Rico; PS PSE Palestine; PT PRT Portugal; PW PLW Palau;
PY PRY Paraguay; QA QAT Qatar; RE REU Réunion; RO ROU Romania; RS SRB Serbia; RU RUS Russia; RW RWA Rwanda;
SA SAU Saudi Arabia; SB SLB Solomon Islands; SC SYC Seychelles; SD SDN Sudan; SE SWE Sweden; SG SGP Singapore;
SH SHN St Helena; SI SVN Slovenia; SJ SJM Svalbard & Jan Mayen; SK SVK Slovakia; SL SLE Sierra Leone; SM SMR San Marino;
SN SEN Senegal; SO SOM Somalia; SR SUR Suriname; SS SSD South Sudan; ST STP Sao Tome & Principe; SV SLV El Salvador;
SX SXM St Maarten (Dutch); SY SYR Syria; SZ SWZ Eswatini (Swaziland); TC TCA Turks & Caicos Is; TD TCD Chad;
TF ATF French S. Terr.; TG TGO Togo; TH THA Thailand; TJ TJK Tajikistan; TK TKL Tokelau; TL TLS East Timor;
TM TKM Turkmenistan; TN TUN Tunisia; TO TON Tonga; TR TUR Turkey; TT TTO Trinidad & Tobago; TV TUV Tuvalu; TW TWN Taiwan;
TZ TZA Tanzania; UA UKR Ukraine; UG UGA Uganda; UM UMI US minor outlying islands; US USA United States; UY URY Uruguay;
UZ UZB Uzbekistan; VA VAT Vatican City; VC VCT St Vincent; VE VEN Venezuela; VG VGB Virgin Islands (UK);
VI VIR Virgin Islands (US); VN VNM Vietnam; VU VUT Vanuatu; WF WLF Wallis & Futuna; WS WSM Samoa (western); YE YEM Yemen;
YT MYT Mayotte; ZA ZAF South Africa; ZM ZMB Zambia; ZW ZWE Zimbabwe
"""
EU = frozenset(
    {
        "AUT",
        "BEL",
        "BGR",
        "CYP",
        "CZE",
        "DEU",
        "DNK",
        "ESP",
        "EST",
        "FIN",
        "FRA",
        "GRC",
        "HRV",
        "HUN",
        "IRL",
        "ITA",
        "LTU",
        "LUX",
        "LVA",
        "MLT",
        "NLD",
        "POL",
        "PRT",
        "ROU",
        "SVK",
        "SVN",
        "SWE",
    }
)
EEA = EU | {"ISL", "LIE", "NOR"}
# As statistics of the United Nations count them, except that Cyprus is with the other members of the EU.
_CONTINENTS = """
AFRICA: AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE
NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW;
ASIA: AE AF AM AZ BD BH BN BT CN GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY NP OM PH PK PS
QA SA SG SY TH TJ TL TM TR TW UZ VN YE;
EUROPE: AD AL AT AX BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK
MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA;
NORTH AMERICA: AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM PR SV SX
TC TT US VC VG VI;
OCEANIA: AS AU CC CK CX FJ FM GU HM KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS;
SOUTH AMERICA: AR BO BR CL CO EC FK GF GS GY PE PY SR UY VE
"""


def _continents() -> dict[str, frozenset[str]]:
    codes = {two: three for two, three, _ in (entry.strip().split(" ", 2) for entry in _TABLE.split(";"))}
    lines = (line.strip().partition(": ") for line in _CONTINENTS.split(";"))
    return {name: frozenset(codes[two] for two in countries.split()) for name, _, countries in lines}


CONTINENTS = ("AFRICA", "ASIA", "EUROPE", "NORTH AMERICA", "OCEANIA", "SOUTH AMERICA")
GROUPS = {"EU": EU, "EEA": EEA, **_continents()}
_ALSO = {"uk": "GBR", "britain": "GBR", "usa": "USA", "unitedstatesofamerica": "USA", "uae": "ARE", "holland": "NLD"}


@cache
def spellings() -> dict[str, str]:
    """Folded spelling -> alpha-3 code or group."""
    known = dict(_ALSO)
    for entry in _TABLE.split(";"):
        two, three, name = entry.strip().split(" ", 2)
        known |= {fold(two): three, fold(three): three, fold(name): three}
    return known | {fold(group): group for group in GROUPS}


@cache
def _names() -> dict[str, str]:
    return {two: name for two, _, name in (entry.strip().split(" ", 2) for entry in _TABLE.split(";"))}


def country_name(code: str) -> str | None:
    """ "CN" -> "China"; None for what is no alpha-2 code."""
    return _names().get(code)


def place_name(place: str) -> str:
    """ "DEU" -> "Germany", "EU" -> "EU", "NORTH AMERICA" -> "North America"."""
    if place in GROUPS:
        return place.title() if place in CONTINENTS else place
    return next(
        (name for _, three, name in (entry.strip().split(" ", 2) for entry in _TABLE.split(";")) if three == place), place
    )


def members(place: str) -> frozenset[str]:
    """The alpha-3 codes that a country code or group stands for."""
    return GROUPS.get(place, frozenset({place}))


def country_of(text: str) -> str | None:
    """ "de" -> "DEU", "germany" -> "DEU", "EU" -> "EU"; None for what is no country."""
    return spellings().get(fold(text))
