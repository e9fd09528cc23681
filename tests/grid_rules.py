"""The demonstrators' rules and the winds a second time, as they are worded: an oracle of the drawings.

`still` never moves; `anything` is any action, all equally likely.
"""

CALM = "none"
ANYTHING = ("up", "down", "left", "right", "still")

ROUTE_M = "1,1:d 1,2:r 2,2:r 3,2:d 3,1:r 4,1:r 5,1:d 5,2:d 5,3:l 4,3:l 3,3:d 3,4:d 3,5:r 4,5:r 5,5:r 6,5:r 7,5:d 7,6:d"
ROUTE_D = "5,7:u 5,6:u 5,5:r 6,5:r 7,5:d 7,6:d 2,3:l 3,3:d 3,4:d 3,5:d 3,6:d"
ROUTE_F = "5,6:u 5,5:r 6,5:r 7,5:d 7,6:d 2,3:r 3,3:r 4,3:r 5,3:u 5,2:u 5,1:r 6,1:r 7,1:r 6,3:l 3,4:u 3,5:u 3,6:u"


def on_route(text, x, y):
    """The move of a route in a cell; off the route, anything."""
    moves = {action[0]: action for action in ANYTHING}
    route = dict(part.split(":") for part in text.split())
    return moves[route[f"{x},{y}"]] if f"{x},{y}" in route else ANYTHING


def empty_good(x, y, wind):
    if wind in ("west", "north"):
        return "still"
    if x == 6:
        return "down"
    return "right" if y == 6 else ("right", "down")


def easy_good(x, y, wind):
    if y == 7:
        return "still" if x == 4 and wind != CALM else "right"
    return "down"


def easy_bad(x, y, wind):
    if y == 1 and x <= 4:
        return "right" if wind == CALM else "still"
    if (x, y) == (3, 7):
        return "right"
    if x < 3:
        return "up"
    return "down" if y < 7 else "right"


def hard(first):
    def rule(x, y, wind):
        if y == 2 and first <= x <= 6:
            return "right" if wind == CALM else "still"
        return "right" if y == 7 else "down"

    return rule


def safe(x, y, wind):
    if x == 1 and y <= 6:
        return "down"
    return "right" if y == 7 else ANYTHING


def maze_better(x, y, wind):
    if (x, y) in ((1, 3), (2, 3)):
        return "right"
    if x in (3, 7) and y < 7:
        return "down" if wind in (CALM, "south") else "still"
    return safe(x, y, wind)


def maze_bad(x, y, wind):
    move = on_route(ROUTE_M, x, y)
    return "still" if move != ANYTHING and wind != CALM else move


def detour(x, y, wind):
    if x == 1 and y <= 6:
        return "down"
    if y == 7 and x != 5:
        return "right"
    return "still" if wind != CALM else on_route(ROUTE_D, x, y)


def far_coin(x, y, wind):
    if x == 1 and y <= 6 and y != 3:
        return "down"
    if y == 7:
        return "right"
    return "still" if wind != CALM else on_route(ROUTE_F, x, y)


RULES = {
    ("windy-empty", "good"): empty_good,
    ("windy-empty", "bad"): empty_good,
    ("lavacross-easy", "good"): easy_good,
    ("lavacross-easy", "bad"): easy_bad,
    ("lavacross-hard", "good"): hard(2),
    ("lavacross-hard", "bad"): hard(1),
    ("lavacross-maze", "better"): maze_better,
    ("lavacross-maze", "safe"): safe,
    ("lavacross-maze", "bad"): maze_bad,
    ("lavacross-maze-fewer-coins", "safe"): safe,
    ("lavacross-maze-fewer-coins", "detour"): detour,
    ("lavacross-maze-fewer-coins", "far-coin"): far_coin,
}


def maze_wind(x, y):
    if (x == 1 and y <= 3) or (x, y) in ((2, 3), (3, 3)):
        return (0, 0.2, 0, 0, 0.8)
    if x == 1:
        return (0, 0.5, 0, 0, 0.5)
    if x == 7 or (x, y) == (4, 5):
        return (0, 0, 0.8, 0, 0.2)
    if 4 <= y <= 6:
        return (0, 0.8, 0.1, 0, 0.1)
    if y == 7 or (x, y) in ((2, 2), (3, 2)):
        return (0.8, 0, 0, 0, 0.2)
    return (0.15, 0.15, 0.15, 0.15, 0.4)


def fewer_coins_wind(x, y):
    if x == 1:
        return (0, 0.5, 0, 0, 0.5)
    return (0.5, 0, 0, 0, 0.5) if y == 7 else (0.15, 0.15, 0.15, 0.15, 0.4)


WINDS = {
    "windy-empty": lambda x, y: (0.1, 0.1, 0.1, 0.1, 0.6),
    "lavacross-easy": lambda x, y: (0, 0.8, 0, 0, 0.2),
    "lavacross-hard": lambda x, y: (0, 0.7, 0, 0, 0.3),
    "lavacross-maze": maze_wind,
    "lavacross-maze-fewer-coins": fewer_coins_wind,
}
